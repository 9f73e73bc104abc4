#include "sim/analytic/crowd.hpp"

#include <algorithm>

namespace rehearse::sim {

Meeting meeting_of(const System& system, const ReplicaRules& rules, const PlanCost& plan, const PriceBook& prices) {
  const auto shares_link = [](const UnitCost& unit) { return unit.copy_alone_s < unit.copy_s; };
  const bool flows = system.simulation.collectives != Fidelity::closed;  // otherwise every call takes its price
  return {.at_nics = flows && rules.exchanges_each() && !prices.stages_at_nics().empty(),
          .in_calls = !plan.units_alone.empty(),
          .at_hosts = std::ranges::any_of(plan.units, shares_link)};
}

namespace {

// Parts of its pipeline's time that a stage is at work there.
struct AtWork {
  double nics = 0, hosts = 0;
};

// The same of those that it shares with, each as often as its GPUs are there.
double met(std::span<const double> users, std::span<const AtWork> stages, double AtWork::*where, std::size_t stage) {
  double all = 0, here = 0;
  for (std::size_t other = 0; other < stages.size(); ++other) {
    if (other == stage) continue;
    all += users[stage * stages.size() + other];
    here += users[stage * stages.size() + other] * stages[other].*where;
  }
  return all > 0 ? here / all : 1;
}

}  // namespace

std::vector<Crowd> crowds_of(const workloads::Workload& workload, const workloads::Compiled& compiled, const ReplicaRules& rules,
                             const Meeting& meeting, const PlanCost& plan, PriceBook& prices, std::span<const StageTerms> stages,
                             double step_s) {
  const bool mirrors = compiled.schedule->mirrors(), splits = compiled.schedule->splits_backward() && !mirrors;
  const double gathers = rules.gathers_each() ? (splits ? 3 : 2) : 0, reductions = rules.reduces_each() ? 1 : 0;
  const double passes = workload.microbatches() / (mirrors ? 2.0 : 1.0);  // through each chunk
  std::vector<AtWork> at_work;
  for (const StageTerms& stage : stages) {
    double exchange_s = 0, calls_s = 0, copies_s = 0;
    for (const ChunkTerms& chunk : stage.chunks) {
      for (const UnitTerms* unit : chunk) {
        exchange_s += gathers * unit->gather_s + unit->gather_again_s + reductions * unit->reduce_s;
        calls_s += unit->cost->nic_s;
        copies_s += unit->copy_s;
      }
    }
    const double pipeline_s = step_s - rules.overhead_s - stage.update_s;
    const auto part = [&](double busy_s) { return passes * busy_s < pipeline_s ? passes * busy_s / pipeline_s : 1; };
    at_work.push_back({part((meeting.at_nics ? exchange_s : 0) + (meeting.in_calls ? calls_s : 0)), part(copies_s)});
  }
  std::vector<Crowd> crowds(plan.units.size(), Crowd{0, 0, 0});
  std::vector<double> holders(plan.units.size());
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const double at_nics = meeting.at_nics || meeting.in_calls ? met(prices.stages_at_nics(), at_work, &AtWork::nics, s) : 1;
    const double at_hosts =
        meeting.at_hosts && !prices.stages_at_hosts().empty() ? met(prices.stages_at_hosts(), at_work, &AtWork::hosts, s) : 1;
    for (std::size_t c = 0; c < plan.chunks; ++c) {
      for (const std::uint32_t unit : plan.chunk(s, c)) {
        crowds[unit].exchange += meeting.at_nics ? at_nics : 1;
        crowds[unit].calls += meeting.in_calls ? at_nics : 1;
        crowds[unit].copies += at_hosts;
        ++holders[unit];
      }
    }
  }
  for (std::size_t u = 0; u < crowds.size(); ++u) {
    for (double Crowd::*part : {&Crowd::exchange, &Crowd::calls, &Crowd::copies}) crowds[u].*part /= holders[u];
  }
  return crowds;
}

}  // namespace rehearse::sim
