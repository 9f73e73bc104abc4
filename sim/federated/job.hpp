// A split-federated job, resolved: model, devices, which cuts each may take, what each cut costs it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/federated/chain.hpp"
#include "sim/federated/problem.hpp"
#include "sim/federated/rates_over_time.hpp"
#include "sim/federated/settings.hpp"
#include "sim/kind/job_kind.hpp"

namespace rehearse::federated {

// What one device does in a round with one cut, in seconds, with the whole of each shared resource (docs/federated.md, equations 1 to 4).
struct RoundLoad {
  double forward_s = 0, backward_s = 0;  // on the device
  double latency_s = 0;                  // of all messages
  double uplink_s = 0, downlink_s = 0;   // smashed data and their gradients
  double model_up_s = 0, model_down_s = 0;
  double server_s = 0;
  double smashed_up_bytes = 0, smashed_down_bytes = 0, model_bytes = 0;
  std::int64_t batches = 0;  // that cross the cut: 0 without one
};

struct Job {
  Settings settings;
  std::string name;
  Chain model;
  std::vector<Cut> cuts;        // "none" last
  std::vector<double> leakage;  // [cut]
  std::vector<Device> devices;
  std::shared_ptr<const RatesOverTime> rates;         // none: the devices' own
  std::vector<std::uint16_t> given_cuts;              // [device], where a file says them; else empty
  std::vector<std::vector<std::uint16_t>> available;  // [device] cuts within limit and memory: least leakage first, then by name

  [[nodiscard]] std::string device_name(std::size_t device) const { return name_of(settings.entries, devices[device]); }
  [[nodiscard]] bool one_band() const { return settings.radio.duplex == Duplex::tdd; }
  [[nodiscard]] bool total_power() const { return settings.radio.power == Power::total; }
  // Averaging the models of so many devices on the server (7).
  [[nodiscard]] double aggregation_s(std::size_t devices) const;
};

// Reads and checks; throws config::InputError with position, or with the device's name.
[[nodiscard]] Job read_job(const std::string& name, const config::Node& document, const std::optional<std::uint64_t>& seed);
[[nodiscard]] sim::JobSummary summary_of(const Job& job);

// `device` with `cut`; rates as the device has them (in a round they may be others).
[[nodiscard]] RoundLoad load_of(const Job& job, const Device& device, std::size_t cut);
// (5): own seconds and the roots of those on each resource. Uplink, downlink, server; with one band: band, server.
[[nodiscard]] Option option_of(const Job& job, const Device& device, const RoundLoad& load);
// Of all devices with all cuts that each may take, in the order of `available`.
[[nodiscard]] Problem problem_of(const Job& job);

// The cut that each device takes, by its index among the job's cuts.
using CutChoice = std::vector<std::uint16_t>;
[[nodiscard]] CutChoice cut_choice(const Job& job, const Cuts& cuts);
[[nodiscard]] std::vector<Option> options_of(const Job& job, const CutChoice& cuts);

}  // namespace rehearse::federated
