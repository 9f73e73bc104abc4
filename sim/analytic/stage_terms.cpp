#include "sim/analytic/stage_terms.hpp"

#include <algorithm>

namespace rehearse::sim {
namespace {

using workloads::CollectiveKind;
using workloads::GroupKind;
using workloads::Slot;

double seconds(PriceBook& prices, const workloads::ReplicaCalls& calls, int stage, bool alone) {
  double sum = 0;
  for (const auto& [kind, group, bytes] : calls) sum += prices.seconds(kind, group, bytes, stage, alone);
  return sum;
}

// alone: while other stages leave the NICs to it.
double gather_s(const workloads::ReplicaSync& sync, const Parameters& parameters, PriceBook& prices, int stage, bool alone = false) {
  if (!sync.shards_parameters && !sync.gathers_weights) return 0;
  return sync.calls_of(parameters) * seconds(prices, sync.gather_calls(parameters), stage, alone);
}

// All of a stage's, when nothing hides them.
double gather_at_once_s(const workloads::ReplicaSync& sync, const Parameters& parameters, PriceBook& prices, int stage,
                        bool alone = false) {
  if (!sync.shards_parameters && !sync.gathers_weights) return 0;
  return sync.calls_at_once() * seconds(prices, sync.gather_calls_at_once(parameters), stage, alone);
}

double reduce_s(const workloads::ReplicaSync& sync, const Parameters& parameters, PriceBook& prices, int stage, bool alone = false) {
  return sync.calls_of(parameters) * seconds(prices, sync.reduction_calls(parameters), stage, alone);
}

PortTimes ports(const workloads::ReplicaCalls& calls, PriceBook& prices, int stage) {
  PortTimes sum;
  for (const auto& [kind, group, bytes] : calls) sum.add(prices.times(kind, group, bytes, stage).ports);
  return sum;
}

// What gathers and reductions of a unit put on the ports where something may meet them.
PortTimes exchange_ports(const ReplicaRules& rules, const Parameters& parameters, PriceBook& prices, int stage) {
  const workloads::ReplicaSync& sync = rules.sync;
  PortTimes sum;
  if (!rules.ports_meet || !sync.replicated()) return sum;
  if (!sync.overlap_parameters && !sync.overlap_gradients && !rules.exchanges_each()) return sum;
  if (sync.shards_parameters || sync.gathers_weights) sum.add(ports(sync.gather_calls(parameters), prices, stage));
  sum.add(ports(sync.reduction_calls(parameters), prices, stage));
  sum.add(ports(sync.calls_of_copies(parameters), prices, stage));
  PortTimes all;
  all.add(sum, sync.calls_of(parameters));
  return all;
}

// By how much a sum over copies holds up the calls of its shard group that are queued behind it, of so many seconds with their latencies:
// what of a port's time it takes from them while both send.
double delay_by_copies_s(const ReplicaRules& rules, const Parameters& parameters, PriceBook& prices, int stage, double shard_s) {
  if (!rules.ports_meet || !rules.sync.copies_beside || shard_s <= 0) return 0;
  PortTimes shard = ports(rules.sync.gather_calls(parameters), prices, stage);
  shard.add(ports(rules.sync.reduction_calls(parameters), prices, stage));
  const PortTimes copies = ports(rules.sync.calls_of_copies(parameters), prices, stage);
  const ContentionPair met = where_they_meet(copies, shard, shard_s);
  return copies.transfer_s * met.alpha * (1 - 1 / met.beta);
}

PassParts pass_of(const UnitCost& cost, Slot::Kind slot) {
  switch (slot) {
    case Slot::Kind::forward:
      return {cost.forward, cost.forward_calls};
    case Slot::Kind::backward:
      return {cost.whole, cost.whole_calls};
    case Slot::Kind::backward_input:
      return {cost.backward, cost.backward_calls};
    case Slot::Kind::backward_weight:
      break;
  }
  return {cost.weight, cost.weight_calls};
}

double between(double alone_s, double crowded_s, double crowd) { return crowd < 1 ? alone_s + crowd * (crowded_s - alone_s) : crowded_s; }

// Those of a unit for every micro-batch: other stages send now and then only.
double gather_s(const ReplicaRules& rules, const Parameters& parameters, PriceBook& prices, int stage, double crowd) {
  const double crowded_s = gather_s(rules.sync, parameters, prices, stage);
  return crowd < 1 && rules.gathers_each() ? between(gather_s(rules.sync, parameters, prices, stage, true), crowded_s, crowd) : crowded_s;
}

// Of a layer that is recomputed in full.
double gather_again_s(const ReplicaRules& rules, const Parameters& parameters, PriceBook& prices, int stage, double crowd) {
  const workloads::ReplicaSync& sync = rules.sync;
  if (!rules.gathers_each() || sync.calls_again(parameters) == 0) return 0;
  const auto of = [&](bool alone) { return sync.calls_again(parameters) * seconds(prices, sync.again_calls(parameters), stage, alone); };
  return crowd < 1 ? between(of(true), of(false), crowd) : of(false);
}

double reduce_s(const ReplicaRules& rules, const Parameters& parameters, PriceBook& prices, int stage, double crowd) {
  const double crowded_s = reduce_s(rules.sync, parameters, prices, stage);
  return crowd < 1 && rules.reduces_each() ? between(reduce_s(rules.sync, parameters, prices, stage, true), crowded_s, crowd) : crowded_s;
}

UnitTerms unit_terms(const UnitCost& cost, const Parameters& parameters, bool leads_root, const ReplicaRules& rules, PriceBook& prices,
                     const Crowd& crowd, int stage) {
  UnitTerms terms{.cost = &cost, .forward_s = cost.forward.total(), .backward_s = cost.backward.total(), .weight_s = cost.weight.total()};
  terms.gather_s = gather_s(rules, parameters, prices, stage, crowd.exchange);
  if (cost.recomputed) terms.gather_again_s = gather_again_s(rules, parameters, prices, stage, crowd.exchange);
  terms.leads_root = leads_root;
  terms.copies_s = seconds(prices, rules.sync.calls_of_copies(parameters), stage, false);
  terms.copy_s = between(cost.copy_alone_s, cost.copy_s, crowd.copies);
  terms.whole_s = cost.whole.total();
  terms.exchange = exchange_ports(rules, parameters, prices, stage);
  if (rules.experts_last && parameters.experts > 0) {
    terms.reduce_s = reduce_s(rules.sync, {parameters.all - parameters.experts, 0}, prices, stage);
    terms.late_reduce_s = reduce_s(rules.sync, {parameters.experts, parameters.experts}, prices, stage);
  } else {
    terms.reduce_s = reduce_s(rules, parameters, prices, stage, crowd.exchange);
  }
  terms.copies_delay_s = delay_by_copies_s(rules, parameters, prices, stage, terms.gather_s + terms.reduce_s);
  for (const Slot::Kind kind : {Slot::Kind::forward, Slot::Kind::backward, Slot::Kind::backward_input, Slot::Kind::backward_weight}) {
    const auto k = static_cast<std::size_t>(kind);
    terms.passes[k] = MetPass(pass_of(cost, kind), terms.exchange, terms.gather_s + terms.reduce_s + terms.copies_s);
    terms.exposed_s[k] = rules.exposed_s(terms, kind);
    terms.slot_s[k] = terms.seconds(kind) + terms.exposed_s[k];
  }
  return terms;
}

// Of the optimizer, on the GPU or (equation 28) the host.
double update_s(const System& system, const workloads::Workload& workload, double parameters, const workloads::HeldParameters& held,
                PriceBook& prices, int stage) {
  const workloads::OptimizerProgram program = workloads::optimizer_program(workload, parameters, held);
  double sum = 0;
  for (const workloads::Operator& op : program.update) sum += operator_seconds(system.gpu, system.software, op);
  const workloads::HostUpdate& host = program.on_host;
  if (!host.happens()) return sum;
  const auto copy = [&](GroupKind way, double bytes) { return prices.seconds(CollectiveKind::send_recv, way, bytes, stage); };
  sum += copy(GroupKind::to_host, host.gradients) + copy(GroupKind::host_memory, host.moved);
  return host.weights > 0 ? sum + copy(GroupKind::from_host, host.weights) : sum;
}

// What stages do one after another on NICs and in host memories that they share.
void fill_shared(const workloads::Workload& workload, const ReplicaRules& rules, const Parameters& own, double updated, PriceBook& prices,
                 int at, StageTerms& stage) {
  if (!prices.stages_at_nics().empty()) {
    stage.gather_alone_s = gather_at_once_s(rules.sync, own, prices, at, true);
    stage.reduce_alone_s = reduce_s(rules.sync, own, prices, at, true);
  }
  if (!workload.optimizer.on_cpu || prices.stages_at_hosts().empty()) return;
  const workloads::HostUpdate host = workloads::optimizer_program(workload, updated).on_host;
  stage.in_memory_s = prices.seconds(CollectiveKind::send_recv, GroupKind::host_memory, host.moved, at);
  stage.in_memory_alone_s = prices.seconds(CollectiveKind::send_recv, GroupKind::host_memory, host.moved, at, true);
  if (host.weights > 0) stage.from_host_s = prices.seconds(CollectiveKind::send_recv, GroupKind::from_host, host.weights, at);
}

// How what replicas exchange meets all of a stage's first forward and last backward, and its messages.
void fill_meetings(const ReplicaRules& rules, const PortTimes& to_next, const PortTimes& to_last, StageTerms& stage) {
  PassParts forward, backward;
  PortTimes exchange;
  double exchange_s = 0;
  for (const ChunkTerms& units : stage.chunks) {
    for (const UnitTerms* unit : units) {
      forward.add(unit->pass(Slot::Kind::forward).parts);
      backward.add(unit->pass(unit->weight_s > 0 ? Slot::Kind::backward_weight : Slot::Kind::backward_input).parts);
      exchange.add(unit->exchange);
      exchange_s += unit->gather_s + unit->reduce_s + unit->copies_s;
    }
  }
  stage.first_forward = stage.last_backward = rules.pair;
  if (exchange.transfer_s <= 0) return;
  stage.first_forward = of_a_pass(forward, rules.pair, exchange, exchange_s);
  stage.last_backward = of_a_pass(backward, rules.pair, exchange, exchange_s);
  stage.to_next = MessageMeets(where_they_meet(to_next, exchange, exchange_s));
  stage.to_last = MessageMeets(where_they_meet(to_last, exchange, exchange_s));
}

}  // namespace

ReplicaRules replica_rules(const System& system, const workloads::Workload& workload, const workloads::Compiled& compiled,
                           const workloads::ReplicaSync& sync, const ContentionPair& pair, bool ports_meet) {
  const workloads::PipelineShape shape{compiled.shape.stages, compiled.shape.chunks, workload.microbatches()};
  return {sync,
          pair,
          shape.microbatches,
          compiled.schedule->turn(shape),
          system.software.step_s,
          ports_meet && system.simulation.collectives != Fidelity::closed,
          compiled.schedule->mirrors() && !sync.reduce_each_microbatch};
}

void fill_stages(const System& system, const workloads::Workload& workload, const ReplicaRules& rules, const PlanCost& plan,
                 PriceBook& prices, std::span<const Crowd> crowds, Workspace& space) {
  const std::size_t stages = plan.parameters.size();
  space.units.clear();
  space.costs.clear();
  const bool leave = !crowds.empty() && !plan.units_alone.empty();
  for (std::size_t u = 0; leave && u < plan.units.size(); ++u)
    space.costs.push_back(between(plan.units_alone[u], plan.units[u], crowds[u].calls));
  const std::vector<UnitCost>& costs = leave ? space.costs : plan.units;
  for (std::size_t u = 0; u < plan.units.size(); ++u)
    space.units.push_back(unit_terms(costs[u], plan.unit_parameters[u], plan.unit_leads_root[u], rules, prices,
                                     crowds.empty() ? Crowd{} : crowds[u], plan.unit_stage[u]));
  space.order.clear();
  for (const std::uint32_t unit : plan.order) space.order.push_back(&space.units[unit]);
  space.chunks.clear();
  for (std::size_t c = 0; c + 1 < plan.first.size(); ++c)
    space.chunks.push_back(ChunkTerms(space.order).subspan(plan.first[c], plan.first[c + 1] - plan.first[c]));
  space.stages.clear();
  space.phases.resize(stages);
  for (std::size_t s = 0; s < stages; ++s) {
    StageTerms& stage = space.stages.emplace_back();
    const int at = static_cast<int>(s);
    const Parameters& own = plan.parameters[s];
    stage.chunks = std::span(space.chunks).subspan(s * plan.chunks, plan.chunks);
    stage.gather_s = gather_at_once_s(rules.sync, own, prices, at);
    stage.reduce_s = reduce_s(rules.sync, own, prices, at);
    stage.tied_s = plan.tied_s[s];
    const double updated = rules.sync.updated(own);
    fill_meetings(rules, plan.hop_ports[s], plan.hop_ports[(s + stages - 1) % stages], stage);
    const workloads::HeldParameters held = workloads::held_in_step(workload, rules.sync, own, updated);
    stage.update_s = prices.update_s(updated, held, at, [&] { return update_s(system, workload, updated, held, prices, at); });
    fill_shared(workload, rules, own, updated, prices, at, stage);
  }
}

}  // namespace rehearse::sim
