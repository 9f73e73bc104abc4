#include <cmath>

#include "sim/federated/job.hpp"

namespace rehearse::federated {
namespace {

constexpr double backward_per_forward = 2;  // FLOPs; the first unit's input gradient is counted all the same, as is usual
constexpr double bits_per_byte = 8;

}  // namespace

double Job::aggregation_s(std::size_t count) const {
  const double parameters = cuts.back().parameter_bytes / model.element_bytes;
  return 2 * static_cast<double>(count) * parameters / settings.server.flop_per_s;
}

RoundLoad load_of(const Job& job, const Device& device, std::size_t cut) {
  const Cut &held = job.cuts[cut], &whole = job.cuts.back();
  const double epochs = static_cast<double>(job.settings.epochs);
  const double samples = epochs * device.samples;
  const double batches = epochs * std::ceil(device.samples / static_cast<double>(job.settings.batch));
  const bool splits = cut + 1 < job.cuts.size();
  const int bits = job.settings.quantize_bits;
  const double smashed = held.smashed_bytes * (bits > 0 ? bits / (job.model.element_bytes * bits_per_byte) : 1);
  RoundLoad load;
  load.forward_s = samples * held.forward_flops / device.flop_per_s;
  load.backward_s = backward_per_forward * load.forward_s;
  load.latency_s = device.latency_s * (splits ? 2 * batches + 2 : 2);
  load.smashed_up_bytes = splits ? samples * (smashed + job.settings.label_bytes) : 0;
  load.smashed_down_bytes = splits ? samples * smashed : 0;
  load.model_bytes = held.parameter_bytes;
  load.uplink_s = load.smashed_up_bytes / device.uplink_bytes_per_s;
  load.downlink_s = load.smashed_down_bytes / device.downlink_bytes_per_s;
  load.model_up_s = load.model_bytes / device.uplink_bytes_per_s;
  load.model_down_s = load.model_bytes / device.downlink_bytes_per_s;
  load.server_s = (1 + backward_per_forward) * samples * (whole.forward_flops - held.forward_flops) / job.settings.server.flop_per_s;
  load.batches = splits ? static_cast<std::int64_t>(batches) : 0;
  return load;
}

Option option_of(const Job& job, const Device& device, const RoundLoad& load) {
  const double up_s = load.uplink_s + load.model_up_s, down_s = load.downlink_s + load.model_down_s;
  Option option{.alpha_s = load.forward_s + load.backward_s + load.latency_s};
  const bool dedicated = job.settings.entries[device.entry].dedicated;
  if (dedicated) option.alpha_s += up_s + down_s;
  const double up = dedicated ? 0 : std::sqrt(up_s), down = dedicated ? 0 : std::sqrt(down_s), server = std::sqrt(load.server_s);
  option.root = job.one_band() ? PerResource{up + down, server, 0} : PerResource{up, down, server};
  return option;
}

Problem problem_of(const Job& job) {
  Problem problem{.resources = job.one_band() ? 2 : 3, .options = {}};
  std::vector<Option> options;
  for (std::size_t n = 0; n < job.devices.size(); ++n) {
    options.clear();
    for (const std::uint16_t cut : job.available[n]) options.push_back(option_of(job, job.devices[n], load_of(job, job.devices[n], cut)));
    problem.add_device(options);
  }
  return problem;
}

CutChoice cut_choice(const Job& job, const Cuts& cuts) {
  CutChoice choice;
  for (std::size_t n = 0; n < cuts.size(); ++n) choice.push_back(job.available[n][cuts[n]]);
  return choice;
}

std::vector<Option> options_of(const Job& job, const CutChoice& cuts) {
  std::vector<Option> options;
  for (std::size_t n = 0; n < cuts.size(); ++n) options.push_back(option_of(job, job.devices[n], load_of(job, job.devices[n], cuts[n])));
  return options;
}

}  // namespace rehearse::federated
