#include "sim/federated/reporters/text.hpp"

#include <fmt/format.h>

#include "sim/federated/leakage.hpp"

namespace rehearse::federated {

std::string seconds_text(double seconds) { return config::human_quantity(seconds, config::Dimension::time); }

const RoundResult& shown_round(const RoundSection& section) { return section.simulated ? section.simulated->result : *section.formula; }

std::string leakage_text(const Job& job) {
  const std::string& measure = job.settings.leakage.measure;
  return fmt::format("{} ({})", measure, LeakageRegistry::get(measure).about());
}

std::vector<NamedUse> uses_of(const RoundSection& section) {
  const RoundResult& round = shown_round(section);
  const Plan& plan = section.plan;
  const Settings& settings = section.job->settings;
  const bool radio = settings.radio.sharing == Sharing::reserved;
  std::vector<NamedUse> uses{
      {section.job->one_band() ? "band" : "uplink", round.uplink, plan.prices.uplink, plan.seconds_per_percent.uplink, radio}};
  if (!section.job->one_band())
    uses.push_back({"downlink", round.downlink, plan.prices.downlink, plan.seconds_per_percent.downlink, radio});
  uses.push_back({"server", round.server, plan.prices.server, plan.seconds_per_percent.server,
                  settings.server.sharing == Sharing::reserved && settings.server.mode == ServerMode::per_device});
  return uses;
}

}  // namespace rehearse::federated
