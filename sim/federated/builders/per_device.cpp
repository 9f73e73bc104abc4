#include "sim/federated/batches.hpp"
#include "sim/federated/device_program.hpp"

namespace rehearse::federated {
namespace {

class PerDeviceWriter {
 public:
  PerDeviceWriter(const Job& job, const Plan& plan, std::size_t device)
      : job_(job), which_(job.devices[device]), load_(load_of(job, which_, plan.cuts[device])), share_(plan.share[device]) {}

  std::vector<Operation> program() {
    delay(which_.latency_s);
    add(Phase::model, Where::downlink, load_.model_down_s, share_.downlink);
    const bool by_round = job_.settings.granularity == Granularity::round || load_.batches == 0;
    if (by_round) {
      batch(1, static_cast<double>(load_.batches));
    } else {
      const Batches batches(job_, which_);
      for (std::int64_t k = 0; k < batches.count(); ++k) batch(batches.part(k), 1);
    }
    delay(which_.latency_s);
    add(Phase::model, Where::uplink, load_.model_up_s, share_.uplink);
    return std::move(out_);
  }

 private:
  void add(Phase phase, Where where, double seconds, double share) {
    if (seconds > 0) out_.push_back({.phase = phase, .where = where, .seconds = seconds, .share = share});
  }
  void delay(double seconds) { add(Phase::latency, Where::delay, seconds, 0); }

  // A part of the round's samples, with so many messages each way.
  void batch(double part, double messages) {
    add(Phase::forward, Where::device, part * load_.forward_s, 0);
    delay(messages * which_.latency_s);
    add(Phase::uplink, Where::uplink, part * load_.uplink_s, share_.uplink);
    add(Phase::server, Where::server, part * load_.server_s, share_.server);
    delay(messages * which_.latency_s);
    add(Phase::downlink, Where::downlink, part * load_.downlink_s, share_.downlink);
    add(Phase::backward, Where::device, part * load_.backward_s, 0);
  }

  const Job& job_;
  const Device& which_;
  RoundLoad load_;
  LinkShares share_;
  std::vector<Operation> out_;
};

// A server model per device. With `sequential` one for all: the same operations, but the server takes one at a time (simulate_round).
class PerDevice final : public RoundBuilder {
 public:
  [[nodiscard]] Programs build(const Job& job, const Plan& plan, const std::vector<std::size_t>& devices) const override {
    Programs programs;
    for (const std::size_t device : devices) programs.of.push_back(device_program(job, plan, device));
    return programs;
  }
};
const RoundBuilderRegistry::Registration<PerDevice> per_device_registration("per-device");
const RoundBuilderRegistry::Registration<PerDevice> sequential_registration("sequential");

}  // namespace

std::vector<Operation> device_program(const Job& job, const Plan& plan, std::size_t device) {
  return PerDeviceWriter(job, plan, device).program();
}

std::string builder_name(ServerMode mode) {
  return mode == ServerMode::per_device ? "per-device" : mode == ServerMode::sequential ? "sequential" : "batched";
}

}  // namespace rehearse::federated
