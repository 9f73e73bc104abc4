#include "sim/federated/energy.hpp"

#include "sim/federated/total_power.hpp"

namespace rehearse::federated {
namespace {

// Of the model exchange's time, the way to the device.
double model_down_share(const Job& job, const Plan& plan, std::size_t device) {
  const Device& which = job.devices[device];
  const RoundLoad load = load_of(job, which, plan.cuts[device]);
  const double up = uplink_part(job, which, plan.share[device].uplink), down = plan.share[device].downlink;
  const bool known = up > 0 && down > 0 && !job.settings.entries[which.entry].dedicated;
  const double up_s = load.model_up_s / (known ? up : 1), down_s = load.model_down_s / (known ? down : 1);
  return up_s + down_s > 0 ? down_s / (up_s + down_s) : 0;
}

}  // namespace

std::optional<double> joules(const Job& job, const Plan& plan, std::size_t device, const DeviceRound& round) {
  const std::optional<PowerDraw>& power = job.settings.entries[job.devices[device].entry].power;
  if (!power) return std::nullopt;
  const double down = model_down_share(job, plan, device), model_s = round.phases[Phase::model];
  const double compute_s = round.phases[Phase::forward] + round.phases[Phase::backward];
  const double send_s = round.phases[Phase::uplink] + (1 - down) * model_s, receive_s = round.phases[Phase::downlink] + down * model_s;
  const double rest_s = round.phases.sum() - compute_s - send_s - receive_s;
  return power->compute_w * compute_s + power->transmit_w * send_s + power->receive_w * receive_s + power->idle_w * rest_s;
}

}  // namespace rehearse::federated
