#include "sim/federated/tune.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/federated/negotiation_time.hpp"
#include "sim/report/csv.hpp"

namespace rehearse::federated {
namespace {

struct Proposal {
  std::size_t device = 0;
  std::uint16_t cut = 0;
  double cost = 0;  // more than the present cut, at the plan's prices
};

// Cheapest first.
std::vector<Proposal> proposals(const Job& job, const Plan& plan) {
  const PerResource v{std::sqrt(plan.prices.uplink), job.one_band() ? std::sqrt(plan.prices.server) : std::sqrt(plan.prices.downlink),
                      job.one_band() ? 0 : std::sqrt(plan.prices.server)};
  const auto cost = [&](std::size_t n, std::uint16_t cut) {
    return cost_of(option_of(job, job.devices[n], load_of(job, job.devices[n], cut)), plan.round_s, v);
  };
  std::vector<Proposal> all;
  for (std::size_t n = 0; n < job.devices.size(); ++n) {
    const double present = cost(n, plan.cuts[n]);
    for (const std::uint16_t cut : job.available[n]) {
      const double extra = cost(n, cut) - present;
      if (cut != plan.cuts[n] && std::isfinite(extra)) all.push_back({n, cut, extra});
    }
  }
  std::ranges::stable_sort(all, {}, &Proposal::cost);
  constexpr std::size_t tried = 20;
  all.resize(std::min(all.size(), tried));
  return all;
}

double simulated_s(const Job& job, const Plan& plan) { return simulate_round(job, plan).result.round_s; }

}  // namespace

TuneSection::ByWeighted improve_by_simulation(const Job& job, Plan& plan, const std::function<void(double)>& progress) {
  TuneSection::ByWeighted out{.before_s = simulated_s(job, plan)};
  out.after_s = out.before_s;
  constexpr int most_passes = 20;
  for (int pass = 0; pass < most_passes; ++pass) {
    std::optional<Plan> best;
    for (const Proposal& proposal : proposals(job, plan)) {
      CutChoice cuts = plan.cuts;
      cuts[proposal.device] = proposal.cut;
      Plan changed = plan_with_tuned_shares(job, cuts);
      const double round_s = simulated_s(job, changed);
      ++out.tried;
      if (round_s >= out.after_s * (1 - 1e-12)) continue;
      out.after_s = round_s;
      best = std::move(changed);
    }
    progress(static_cast<double>(pass + 1) / most_passes);
    if (!best) break;
    best->bound_s = plan.bound_s;
    plan = std::move(*best);
    ++out.taken;
  }
  return out;
}

TuneSection::Decentral decentral(const Job& job) {
  TuneSection::Decentral out{.negotiation = negotiate(problem_of(job))};
  out.bytes_up = out.negotiation.numbers_up * bytes_per_number;
  out.bytes_down = out.negotiation.numbers_down * bytes_per_number;
  out.seconds = negotiation_s(job, out.negotiation);
  return out;
}

std::string shares_csv(const Job& job, const Plan& plan) {
  std::string text = "name,cut,uplink,downlink,server\n";
  for (std::size_t n = 0; n < plan.share.size(); ++n) {
    const LinkShares& share = plan.share[n];
    text += fmt::format("{},{},{},{},{}\n", sim::csv_field(job.device_name(n)), sim::csv_field(job.cuts[plan.cuts[n]].name), share.uplink,
                        share.downlink, share.server);
  }
  return text;
}

std::string tuned_job_yaml(const Job& job, const Plan& plan, const std::string& shares_file) {
  Settings settings = job.settings;
  if (settings.server.mode == ServerMode::batched) {
    settings.cuts = {.for_all = job.cuts[plan.cuts.front()].name, .by_entry = {}, .file = {}};
  } else {
    const config::Node file = config::Node::scalar(shares_file, true);
    settings.cuts = {.for_all = "", .by_entry = {}, .file = file};
    settings.shares = {"file", file};
  }
  return job_keys().write(settings).to_yaml();
}

}  // namespace rehearse::federated
