#include "sim/analytic/plan_cost.hpp"

#include <map>
#include <optional>
#include <tuple>

namespace rehearse::sim {

using workloads::CollectiveKind;
using workloads::GroupKind;

PlanCost::PlanCost(const System& system, const workloads::Workload& workload, const workloads::Compiled& compiled, PriceBook& prices,
                   ExpertPrices* experts)
    : contentions(system.gpu), chunks(static_cast<std::size_t>(compiled.shape.chunks)) {
  const int step = experts == nullptr ? 0 : experts->step();
  std::optional<ExpertPrices> own_experts;
  if (workload.model.moe && experts == nullptr) experts = &own_experts.emplace(system, workload, prices);
  UnitPricer pricer(system, workload, prices, contentions, experts);
  const bool alike = experts == nullptr || (experts->layer().loads().even() && workload.experts.layer_chunks.empty());
  std::map<std::tuple<int, int, int>, std::uint32_t> known;  // by program, place and layer
  for (int s = 0; s < compiled.shape.stages; ++s) {
    const workloads::StageProgram& stage = compiled.stages[static_cast<std::size_t>(s)];
    for (const std::vector<workloads::Unit>& of_chunk : stage.chunks) {
      first.push_back(static_cast<std::uint32_t>(order.size()));
      for (const workloads::Unit& unit : of_chunk) {
        const bool own = !alike && unit.layer_kind == workloads::LayerKind::experts;
        const auto [it, added] = known.try_emplace({unit.program_number, prices.place(s), own ? unit.first_layer : -1},
                                                   static_cast<std::uint32_t>(units.size()));
        if (added) {
          units.push_back(pricer.price(unit, s));
          unit_parameters.push_back(unit.exchanged);
          unit_leads_root.push_back(unit.leads_root);
          unit_stage.push_back(s);
        }
        order.push_back(it->second);
      }
    }
    const PriceBook::Times hop = compiled.shape.stages == 1 ? PriceBook::Times{} : prices.hop(compiled.message_bytes, s);
    hop_s.push_back(hop.seconds);
    hop_ports.push_back(hop.ports);
    const double tied = compiled.tied_bytes_of(s);
    tied_s.push_back(tied == 0 ? 0 : prices.seconds(CollectiveKind::all_reduce, GroupKind::embedding, tied, s));
    parameters.push_back(stage.parameters);
  }
  first.push_back(static_cast<std::uint32_t>(order.size()));
  price_alone(system, workload, compiled, prices, step);
}

// Calls that are timed activities take their price beside any others: all of them, or those of tensor parallelism.
void PlanCost::price_alone(const System& system, const workloads::Workload& workload, const workloads::Compiled& compiled,
                           PriceBook& prices, int step) {
  const Fidelity fidelity = system.simulation.collectives;
  if (fidelity == Fidelity::closed || prices.stages_at_nics().empty()) return;
  const auto timed = fidelity == Fidelity::automatic ? std::optional(GroupKind::tp) : std::nullopt;
  PriceBook alone = PriceBook::alone(prices, timed);
  std::optional<ExpertPrices> experts;
  if (workload.model.moe) experts.emplace(system, workload, alone, step);
  UnitPricer pricer(system, workload, alone, contentions, experts ? &*experts : nullptr);
  units_alone.resize(units.size());
  std::vector<bool> known(units.size());
  bool differ = false;
  std::size_t chunk = 0;
  for (int s = 0; s < compiled.shape.stages; ++s) {
    for (const std::vector<workloads::Unit>& of_chunk : compiled.stages[static_cast<std::size_t>(s)].chunks) {
      const std::span<const std::uint32_t> which = std::span(order).subspan(first[chunk++], of_chunk.size());
      for (std::size_t i = 0; i < of_chunk.size(); ++i) {
        if (known[which[i]]) continue;
        known[which[i]] = true;
        units_alone[which[i]] = pricer.price(of_chunk[i], s);
        differ = differ || !units_alone[which[i]].takes_as_long_as(units[which[i]]);
      }
    }
  }
  if (!differ) units_alone.clear();
}

}  // namespace rehearse::sim
