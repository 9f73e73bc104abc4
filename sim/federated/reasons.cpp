#include "sim/federated/reasons.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace rehearse::federated {
namespace {

double idle_share(const ResourceUse& use) { return use.reserved_s > 0 ? std::max(0.0, 1 - use.busy_s / use.reserved_s) : 0; }

void say_idle(const RoundSection& section, std::vector<std::string>& out) {
  const RoundResult& formula = *section.formula;
  const Settings& settings = section.job->settings;
  const auto say = [&](const char* what, Sharing sharing, const ResourceUse& use) {
    if (sharing == Sharing::fifo || use.reserved_s == 0) return;
    out.push_back(fmt::format("{}: reserved shares are idle {:.0f} % of the round{}", what, 100 * idle_share(use),
                              sharing == Sharing::weighted ? ", and weights give that to others: the formula is an upper bound" : ""));
  };
  say(section.job->one_band() ? "band" : "uplink", settings.radio.sharing, formula.uplink);
  if (!section.job->one_band()) say("downlink", settings.radio.sharing, formula.downlink);
  if (settings.server.mode == ServerMode::per_device) say("server", settings.server.sharing, formula.server);
}

void say_last(const RoundSection& section, std::vector<std::string>& out) {
  const std::vector<DeviceRound>& devices = section.simulated->result.devices;
  std::vector<std::size_t> order(devices.size());
  for (std::size_t n = 0; n < order.size(); ++n) order[n] = n;
  if (order.size() < 2) return;
  std::ranges::partial_sort(order, order.begin() + 2, std::ranges::greater{}, [&](std::size_t n) { return devices[n].end_s; });
  const double by_s = devices[order[0]].end_s - devices[order[1]].end_s;
  if (by_s > 1e-6 * devices[order[0]].end_s)
    out.push_back(fmt::format("barrier: device {} is last by {:.4g} s", section.job->device_name(order[0]), by_s));
}

void say_late(const RoundSection& section, std::vector<std::string>& out) {
  const auto late = [](const RoundResult& round) { return std::ranges::count(round.devices, Fate::late, &DeviceRound::fate); };
  const auto by_formula = late(*section.formula), simulated = late(section.simulated->result);
  if (by_formula + simulated > 0)
    out.push_back(fmt::format("deadline: {} devices are late by formula, {} simulated", by_formula, simulated));
}

}  // namespace

std::vector<std::string> reasons_of(const RoundSection& section) {
  std::vector<std::string> out;
  const Settings& settings = section.job->settings;
  if (!has_closed_form(*section.job))
    out.push_back("first come first served has no closed form: the formula is the bound of any schedule of these cuts");
  if (section.simulated->queue_s > 0)
    out.push_back(fmt::format("queues: {:.4g} device seconds were spent in them", section.simulated->queue_s));
  say_idle(section, out);
  say_last(section, out);
  say_late(section, out);
  if (settings.radio.fading != Fading::none)
    out.push_back("fading: formula and simulation of one round take the mean gain; `run` draws it");
  for (std::size_t n = 0; n < section.plan.blame.size(); ++n) {
    constexpr double nearly_all = 0.9;
    if (section.plan.blame[n] > nearly_all && section.plan.blame.size() > 1)
      out.push_back(
          fmt::format("device {} sets the round alone: of each second that it loses {:.0f} % are lost by all, and shares help little",
                      section.job->device_name(n), 100 * section.plan.blame[n]));
  }
  return out;
}

}  // namespace rehearse::federated
