#include <algorithm>

#include "sim/federated/batched.hpp"
#include "sim/federated/faults.hpp"
#include "sim/federated/round_result.hpp"
#include "sim/federated/total_power.hpp"

namespace rehearse::federated {
namespace {

double over(double seconds, double part) { return seconds > 0 ? seconds / part : 0; }

Phases phases_of(const Job& job, std::size_t device, std::size_t cut, const LinkShares& share) {
  const Device& which = job.devices[device];
  const RoundLoad load = load_of(job, which, cut);
  const bool dedicated = job.settings.entries[which.entry].dedicated;
  const double up = dedicated ? 1 : uplink_part(job, which, share.uplink), down = dedicated ? 1 : share.downlink;
  Phases phases;
  phases[Phase::forward] = load.forward_s;
  phases[Phase::backward] = load.backward_s;
  phases[Phase::uplink] = over(load.uplink_s, up);
  phases[Phase::downlink] = over(load.downlink_s, down);
  phases[Phase::server] = over(load.server_s, share.server);
  phases[Phase::model] = over(load.model_up_s, up) + over(load.model_down_s, down);
  phases[Phase::latency] = load.latency_s;
  return phases;
}

// [device] The share of its work that it comes to before the deadline: 1, or it is late.
std::vector<double> done_in_time(const Job& job, const Plan& plan, double deadline_s) {
  std::vector<double> done(plan.cuts.size(), 1);
  if (!has_closed_form(job)) return done;
  const bool batched = job.settings.server.mode == ServerMode::batched;
  for (std::size_t n = 0; n < done.size(); ++n) done[n] = std::min(1.0, deadline_s / (batched ? plan.round_s : plan.latency_s[n]));
  return done;
}

// What the devices' loads are of the resources, with aggregation.
void count_use(const Job& job, const Plan& plan, const std::vector<double>& done, RoundResult& result) {
  for (std::size_t n = 0; n < plan.cuts.size(); ++n) {
    const RoundLoad load = load_of(job, job.devices[n], plan.cuts[n]);
    if (!job.settings.entries[job.devices[n].entry].dedicated) {
      result.uplink.busy_s += done[n] * (load.uplink_s + load.model_up_s);
      const double gradients_s = job.settings.broadcast ? 0 : load.downlink_s;
      (job.one_band() ? result.uplink : result.downlink).busy_s += done[n] * (gradients_s + load.model_down_s);
      result.uplink.reserved_s += plan.share[n].uplink * result.round_s;
      (job.one_band() ? result.uplink : result.downlink).reserved_s += plan.share[n].downlink * result.round_s;
    }
    result.server.busy_s += done[n] * load.server_s;
    result.server.reserved_s += plan.share[n].server * result.round_s;
  }
  result.server.busy_s += result.aggregation_s;
}

Phases batched_phases(const Job& job, const Plan& plan, const BatchedRound& round, std::size_t device) {
  const RoundLoad load = load_of(job, job.devices[device], plan.cuts[device]);
  Phases phases;
  phases[Phase::forward] = load.forward_s;
  phases[Phase::backward] = load.backward_s;
  phases[Phase::latency] = load.latency_s;
  phases[Phase::model] = over(load.model_down_s, round.model_down.share[device]) + over(load.model_up_s, round.model_up.share[device]);
  if (job.settings.entries[job.devices[device].entry].dedicated) phases[Phase::model] = load.model_down_s + load.model_up_s;
  for (const BatchedBatch& batch : round.batches) {
    const double part = batch.part[device], times = static_cast<double>(batch.times);
    if (part == 0) continue;
    const bool dedicated = batch.up.share[device] == 0;
    phases[Phase::uplink] += times * over(part * load.uplink_s, dedicated ? 1 : batch.up.share[device]);
    phases[Phase::downlink] +=
        times * (batch.broadcast_s > 0 ? batch.broadcast_s : over(part * load.downlink_s, dedicated ? 1 : batch.down.share[device]));
    phases[Phase::server] += times * batch.server_s;
  }
  return phases;
}

}  // namespace

bool RoundResult::anybody_finished() const {
  return devices.empty() || std::ranges::any_of(devices, [](const DeviceRound& device) { return device.fate == Fate::finished; });
}

bool has_closed_form(const Job& job) {
  const Settings& settings = job.settings;
  if (settings.server.mode == ServerMode::batched) return true;
  return settings.server.mode == ServerMode::per_device && settings.server.sharing != Sharing::fifo &&
         settings.radio.sharing != Sharing::fifo;
}

RoundResult round_by_formula(const Job& job, const Plan& plan) {
  RoundResult result;
  result.method = "formula";
  const bool closed = has_closed_form(job), batched = job.settings.server.mode == ServerMode::batched;
  const double until_s = deadline_s(job);
  const std::vector<double> done = done_in_time(job, plan, until_s);
  result.aggregation_s = job.aggregation_s(static_cast<std::size_t>(std::ranges::count(done, 1.0)));
  const double training_s = std::min(closed ? plan.round_s : plan.any_schedule_s, until_s);
  result.round_s = training_s + result.aggregation_s;
  count_use(job, plan, done, result);
  if (!closed) return result;
  const BatchedRound round = batched ? batched_round(job, plan.cuts) : BatchedRound{};
  for (const BatchedBatch& batch : round.batches) {
    (job.one_band() ? result.uplink : result.downlink).busy_s += static_cast<double>(batch.times) * batch.broadcast_s;
  }
  for (std::size_t n = 0; n < plan.cuts.size(); ++n) {
    DeviceRound device{.end_s = batched ? training_s : std::min(plan.latency_s[n], until_s), .phases = {}};
    if (done[n] < 1) device.fate = Fate::late;
    device.phases = batched ? batched_phases(job, plan, round, n) : phases_of(job, n, plan.cuts[n], plan.share[n]);
    for (double& seconds : device.phases.seconds) seconds *= done[n];
    device.phases[Phase::waiting] = std::max(0.0, training_s - device.phases.sum());
    device.phases[Phase::aggregation] = result.aggregation_s;
    result.devices.push_back(device);
  }
  result.simulated = result.devices.size();
  return result;
}

}  // namespace rehearse::federated
