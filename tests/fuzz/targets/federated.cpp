#include <algorithm>
#include <cmath>

#include "sim/federated/faults.hpp"
#include "sim/federated/plan.hpp"
#include "sim/federated/round_result.hpp"
#include "sim/federated/simulate_round.hpp"
#include "tests/fuzz/target.hpp"

namespace rehearse::fuzz {
namespace {

// A round that was accepted has a time, and no schedule is faster than the bound.
class Federated final : public Target {
  void read(const std::string& input) const override {
    const federated::Job job = federated::read_job("job", config::Node::load_text(input, "job.yaml"), {});
    if (job.devices.size() > 100) return;  // the readers are what is tried here
    const federated::Plan plan = federated::make_plan(job);
    const double formula_s = federated::round_by_formula(job, plan).round_s;
    if (!(formula_s > 0) || !std::isfinite(formula_s)) throw Nonsense("a round takes no time");
    if (formula_s < std::min(plan.any_schedule_s, federated::deadline_s(job)) * (1 - 1e-9))
      throw Nonsense("a round below what any schedule takes");
  }
};

// Devices, cuts and shares, and rates over time come in tables.
class DeviceTable final : public Target {
  void read(const std::string& input) const override {
    const std::string text =
        "model: vgg5-cifar\nfederated:\n  devices: {file: " + scratch_file("devices.csv", input) + "}\n  server: {speed: 1 TFLOP/s}\n";
    static_cast<void>(federated::read_job("job", config::Node::load_text(text, "job.yaml"), {}));
  }
};

class ShareTable final : public Target {
  void read(const std::string& input) const override {
    const std::string file = scratch_file("shares.csv", input);
    const std::string text =
        "model: vgg5-cifar\nfederated:\n  devices:\n    - {name: d, count: 2, speed: 9 GFLOP/s, samples: 100, uplink: 10 Mbps, downlink: "
        "20 "
        "Mbps}\n  server: {speed: 1 TFLOP/s}\n  cuts: {file: " +
        file + "}\n  shares: {file: " + file + "}\n";
    const federated::Job job = federated::read_job("job", config::Node::load_text(text, "job.yaml"), {});
    static_cast<void>(federated::make_plan(job));
  }
};

class RateTable final : public Target {
  void read(const std::string& input) const override {
    const std::string text =
        "model: vgg5-cifar\nfederated:\n  devices:\n    - {name: d, speed: 9 GFLOP/s, samples: 100, uplink: 10 Mbps, downlink: 20 Mbps}\n"
        "  server: {speed: 1 TFLOP/s}\n  radio: {rates: " +
        scratch_file("rates.csv", input) + "}\n";
    static_cast<void>(federated::read_job("job", config::Node::load_text(text, "job.yaml"), {}));
  }
};

const TargetRegistry::Registration<Federated> federated_registration("federated");
const TargetRegistry::Registration<DeviceTable> device_table_registration("device_table");
const TargetRegistry::Registration<ShareTable> share_table_registration("share_table");
const TargetRegistry::Registration<RateTable> rate_table_registration("rate_table");

}  // namespace
}  // namespace rehearse::fuzz
