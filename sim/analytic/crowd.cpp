#include "sim/analytic/crowd.hpp"

#include <algorithm>

namespace rehearse::sim {

Meeting meeting_of(const System& system, const ReplicaRules& rules, std::span<const UnitTerms> units, const PriceBook& prices) {
  const auto shares_link = [](const UnitTerms& unit) { return unit.cost->copy_alone_s < unit.cost->copy_s; };
  const bool flows = system.simulation.collectives != Fidelity::closed;  // otherwise every call takes its price
  return {.at_nics = flows && rules.exchanges_each() && !prices.stages_at_nics().empty(),
          .at_hosts = std::ranges::any_of(units, shares_link)};
}

Crowd crowd_of(const workloads::Workload& workload, const workloads::Compiled& compiled, const ReplicaRules& rules, const Meeting& meeting,
               std::span<const StageTerms> stages, double step_s) {
  const bool mirrors = compiled.schedule->mirrors(), splits = compiled.schedule->splits_backward() && !mirrors;
  const double gathers = rules.gathers_each() ? (splits ? 3 : 2) : 0, reductions = rules.reduces_each() ? 1 : 0;
  double exchange_s = 0, copies_s = 0, update_s = 0;
  for (const StageTerms& stage : stages) {
    update_s += stage.update_s;
    for (const ChunkTerms& chunk : stage.chunks) {
      for (const UnitTerms* unit : chunk) {
        exchange_s += gathers * unit->gather_s + unit->gather_again_s + reductions * unit->reduce_s;
        copies_s += unit->copy_s;
      }
    }
  }
  const double pipelines_s = static_cast<double>(stages.size()) * (step_s - rules.overhead_s) - update_s;
  const double passes = workload.microbatches() / (mirrors ? 2.0 : 1.0);  // through each chunk
  const auto part = [&](bool meet, double busy_s) { return meet ? std::min(1.0, passes * busy_s / pipelines_s) : 1; };
  return {.exchange = part(meeting.at_nics, exchange_s), .copies = part(meeting.at_hosts, copies_s)};
}

}  // namespace rehearse::sim
