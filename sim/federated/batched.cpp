#include "sim/federated/batched.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/federated/batches.hpp"

namespace rehearse::federated {
namespace {

struct Loads {
  std::vector<RoundLoad> load;
  std::vector<double> latency_s;
  std::vector<bool> dedicated;
};

Loads loads_of(const Job& job, const CutChoice& cuts) {
  Loads loads;
  for (std::size_t n = 0; n < cuts.size(); ++n) {
    loads.load.push_back(load_of(job, job.devices[n], cuts[n]));
    loads.latency_s.push_back(job.devices[n].latency_s);
    loads.dedicated.push_back(job.settings.entries[job.devices[n].entry].dedicated);
  }
  return loads;
}

JointTransfer model_transfer(const Loads& loads, double RoundLoad::*seconds) {
  std::vector<double> medium_s;
  for (const RoundLoad& load : loads.load) medium_s.push_back(load.*seconds);
  return joint_transfer(loads.latency_s, medium_s, loads.dedicated);
}

// One message for all devices that have the batch: as large as the largest of theirs, as fast as the slowest of them hears.
double broadcast_s(const Job& job, const Loads& loads, std::span<const double> part) {
  double bytes = 0, slowest_bytes_per_s = std::numeric_limits<double>::infinity();
  for (std::size_t n = 0; n < part.size(); ++n) {
    if (part[n] == 0) continue;
    bytes = std::max(bytes, part[n] * loads.load[n].smashed_down_bytes);
    slowest_bytes_per_s = std::min(slowest_bytes_per_s, job.devices[n].downlink_bytes_per_s);
  }
  return bytes / slowest_bytes_per_s;
}

BatchedBatch batch_of(const Job& job, const Loads& loads, std::vector<double> part) {
  BatchedBatch batch;
  std::vector<double> before_s, up_s, after_s, down_s;
  for (std::size_t n = 0; n < part.size(); ++n) {
    const RoundLoad& load = loads.load[n];
    const double latency_s = part[n] > 0 ? loads.latency_s[n] : 0;
    before_s.push_back(part[n] * load.forward_s + latency_s);
    after_s.push_back(latency_s);
    up_s.push_back(part[n] * load.uplink_s);
    down_s.push_back(part[n] * load.downlink_s);
    batch.server_s += part[n] * load.server_s;
  }
  if (job.settings.broadcast) {
    batch.broadcast_s = broadcast_s(job, loads, part);
    std::ranges::fill(down_s, 0);
  }
  // After its gradients have come a device goes backward: the transfer ends earlier for whoever needs long for that.
  for (std::size_t n = 0; n < part.size(); ++n) after_s[n] += part[n] * loads.load[n].backward_s;
  batch.up = joint_transfer(before_s, up_s, loads.dedicated);
  batch.down = joint_transfer(after_s, down_s, loads.dedicated);
  batch.part = std::move(part);
  return batch;
}

bool splits(const Job& job, const CutChoice& cuts) { return !cuts.empty() && cuts.front() + 1U < job.cuts.size(); }

// Without a cut nobody waits for anybody between the models' transfers.
double longest_training_s(const Loads& loads) {
  double longest_s = 0;
  for (const RoundLoad& load : loads.load) longest_s = std::max(longest_s, load.forward_s + load.backward_s);
  return longest_s;
}

}  // namespace

JointTransfer joint_transfer(std::span<const double> own_s, std::span<const double> medium_s, const std::vector<bool>& dedicated) {
  std::vector<Option> options;
  for (std::size_t n = 0; n < own_s.size(); ++n) {
    Option option{.alpha_s = own_s[n] + (dedicated[n] ? medium_s[n] : 0)};
    if (!dedicated[n]) option.root[0] = std::sqrt(medium_s[n]);
    options.push_back(option);
  }
  const Shares shares = exact_shares(options);
  JointTransfer out{.seconds = shares.round_s, .share = {}};
  for (const PerResource& share : shares.share) out.share.push_back(share[0]);
  return out;
}

BatchedRound batched_round(const Job& job, const CutChoice& cuts) {
  const Loads loads = loads_of(job, cuts);
  BatchedRound round{.model_down = model_transfer(loads, &RoundLoad::model_down_s),
                     .model_up = model_transfer(loads, &RoundLoad::model_up_s),
                     .batches = {},
                     .round_s = 0};
  round.round_s = round.model_down.seconds + round.model_up.seconds;
  if (!splits(job, cuts)) {
    round.round_s += longest_training_s(loads);
    return round;
  }
  std::int64_t most = 0;
  for (const Device& device : job.devices) most = std::max(most, Batches(job, device).count());
  for (std::int64_t k = 0; k < most; ++k) {
    std::vector<double> part;
    for (const Device& device : job.devices) {
      const Batches batches(job, device);
      part.push_back(k < batches.count() ? batches.part(k) : 0);
    }
    if (!round.batches.empty() && round.batches.back().part == part) {
      ++round.batches.back().times;
    } else {
      round.batches.push_back(batch_of(job, loads, std::move(part)));
    }
  }
  for (const BatchedBatch& batch : round.batches) {
    round.round_s += static_cast<double>(batch.times) * (batch.up.seconds + batch.server_s + batch.broadcast_s + batch.down.seconds);
  }
  return round;
}

Plan batched_plan(const Job& job, std::uint16_t cut) {
  Plan plan;
  plan.cuts.assign(job.devices.size(), cut);
  plan.share.resize(job.devices.size());  // every transfer has its own
  plan.round_s = batched_round(job, plan.cuts).round_s;
  plan.latency_s.assign(job.devices.size(), plan.round_s);
  plan.sum_s = plan.round_s * static_cast<double>(job.devices.size());
  plan.any_schedule_s = any_schedule_s(job, plan.cuts);
  return plan;
}

Plan batched_plan(const Job& job) {
  const std::string& named = job.settings.cuts.for_all;
  std::optional<Plan> best;
  for (std::size_t i = 0; i < job.cuts.size(); ++i) {
    const auto cut = static_cast<std::uint16_t>(i);
    const auto may = [&](const std::vector<std::uint16_t>& cuts) { return std::ranges::find(cuts, cut) != cuts.end(); };
    if ((named != "tuned" && job.cuts[cut].name != named) || !std::ranges::all_of(job.available, may)) continue;
    Plan plan = batched_plan(job, cut);
    if (!best || plan.round_s < best->round_s) best = std::move(plan);
  }
  if (best) return *best;
  for (std::size_t n = 0; n < job.devices.size(); ++n) {
    if (job.available[n].size() == job.cuts.size()) continue;
    throw config::InputError(job.settings.entries[job.devices[n].entry].where,
                             fmt::format("server.mode batched: no cut is available to all devices; device '{}' may take {} of {}",
                                         job.device_name(n), job.available[n].size(), job.cuts.size()));
  }
  throw config::InputError("server.mode batched: no cut is available to all devices");
}

}  // namespace rehearse::federated
