#include "sim/analytic/unit_cost.hpp"

#include <algorithm>
#include <concepts>
#include <tuple>
#include <type_traits>
#include <utility>

#include "sim/cost/queue.hpp"

namespace rehearse::sim {

using workloads::CollectiveKind;
using workloads::Communication;
using workloads::GroupKind;

Contentions::Contentions(const Gpu& gpu)
    : tp(gpu.contention_with(Phase::tp)),
      cp(gpu.contention_with(Phase::cp)),
      ep(gpu.contention_with(Phase::ep)),
      dp(gpu.contention_with(Phase::dp)),
      offload(gpu.contention_with(Phase::offload)) {}

UnitCost UnitPricer::price(const workloads::Unit& unit, int stage) {
  const workloads::UnitProgram& program = *unit.program;
  const bool split = !program.backward_input.empty() || !program.backward_weight.empty();
  UnitCost cost;
  cost.recomputed = unit.recomputed;
  PassCost forward{stage, unit.first_layer, cost.forward, cost.forward_calls, cost.nic_s, &cost.forward_pieces};
  add(program.forward, Phase::compute, forward);
  PassCost backward{stage, unit.first_layer, cost.backward, cost.backward_calls, cost.nic_s, &cost.backward_pieces};
  add(program.recompute, Phase::recompute, backward);
  add(split ? program.backward_input : program.backward, Phase::compute, backward);
  PassCost weight{stage, unit.first_layer, cost.weight, cost.weight_calls, cost.nic_s};
  add(program.backward_weight, Phase::compute, weight);
  if (split) {
    double again = 0;  // the same calls
    PassCost whole{stage, unit.first_layer, cost.whole, cost.whole_calls, again};
    add(program.recompute, Phase::recompute, whole);
    add(program.backward, Phase::compute, whole);
  } else {
    cost.whole = cost.backward;
    cost.whole_calls = cost.backward_calls;
  }
  if (program.offloaded_bytes > 0) {
    const bool own = unit.layer_kind == workloads::LayerKind::experts;
    const double bytes = program.offloaded_bytes + program.offloaded_per_pair * (own ? experts_->most_pairs(unit.first_layer) : 0);
    const PriceBook::Times copy = prices_.times(CollectiveKind::send_recv, GroupKind::to_host, bytes, stage);
    cost.copy_s = copy.seconds;
    cost.copy_alone_s = prices_.seconds(CollectiveKind::send_recv, GroupKind::to_host, bytes, stage, true);
    if (system_.simulation.collectives != Fidelity::closed) cost.copy_ports = copy.ports;
  }
  return cost;
}

namespace {

// The numbers of each part of a price, every one: another field does not compile before it is named here.
template <class Part, class Of>
concept PartOf = std::same_as<std::remove_const_t<Part>, Of>;
auto numbers_of(PartOf<PhaseTimes> auto& of) {
  auto& [seconds] = of;
  return std::tie(seconds);
}
auto numbers_of(PartOf<PieceTimes> auto& of) {
  auto& [dispatch, compute, combine, calls, delayed] = of;
  return std::tie(dispatch, compute, combine, calls, delayed);
}
auto numbers_of(PartOf<PortTimes> auto& of) {
  auto& [transfer, scale_up, nic, scale_up_messages, nic_messages] = of;
  return std::tie(transfer, scale_up, nic, scale_up_messages, nic_messages);
}
auto numbers_of(PartOf<WaitedCalls> auto& of) {
  auto& [ports, before, after, joined] = of;
  return std::tie(ports, before, after, joined);
}
// Of its copies none: what other stages leave them is another share (stage_terms.cpp).
auto numbers_of(PartOf<UnitCost> auto& of) {
  auto& [forward, backward, weight, whole, forward_pieces, backward_pieces, recomputed, copy_s, copy_alone_s, forward_calls, backward_calls,
         weight_calls, whole_calls, copy_ports, nic_s] = of;
  return std::tie(forward, backward, weight, whole, forward_pieces, backward_pieces, forward_calls, backward_calls, weight_calls,
                  whole_calls, nic_s);
}

// Each number of the one and the same of the other: two prices of one unit.
template <class One, class Other, class Visit>
void side_by_side(One& one, Other& other, const Visit& visit) {
  if constexpr (std::same_as<std::remove_const_t<One>, double>) {
    visit(one, other);
  } else if constexpr (requires { one.size(); }) {
    for (std::size_t i = 0; i < one.size(); ++i) side_by_side(one[i], other[i], visit);
  } else {
    const auto ones = numbers_of(one);
    const auto others = numbers_of(other);
    [&]<std::size_t... at>(std::index_sequence<at...>) { (side_by_side(std::get<at>(ones), std::get<at>(others), visit), ...); }
    (std::make_index_sequence<std::tuple_size_v<std::remove_const_t<decltype(ones)>>>{});
  }
}

}  // namespace

bool UnitCost::takes_as_long_as(const UnitCost& other) const {
  bool equal = true;
  side_by_side(*this, other, [&](double one, double same) { equal = equal && one == same; });
  return equal;
}

UnitCost between(const UnitCost& from, const UnitCost& to, double part) {
  UnitCost cost = to;
  side_by_side(cost, from, [&](double& number, double from_there) { number = from_there + part * (number - from_there); });
  return cost;
}

double UnitPricer::seconds(const workloads::ComputeSegment& segment, int stage) {
  return queued_seconds(system_.gpu, system_.software, segment.operators, *segment.queue,
                        more_issue_s(system_.gpu, system_.software, system_.cluster, workload_),
                        [&](const Communication& call) { return seconds(call, stage); });
}

double UnitPricer::paired_s(const workloads::Operator& product) const { return device_seconds(system_.gpu, system_.software, product); }

void UnitPricer::add(const std::vector<workloads::Segment>& segments, Phase phase, PassCost& to) {
  for (const workloads::Segment& segment : segments) {
    const double before = to.times.total(), computed = to.times[Phase::compute] + to.times[Phase::recompute];
    const double sent = to.calls.ports.transfer_s;
    const bool experts = std::holds_alternative<workloads::ExpertSegment>(segment);
    if (to.pieces != nullptr && (experts || !to.in_dense)) to.pieces->push_back({});
    add(segment, phase, to);
    if (to.pieces != nullptr && !experts) {
      PieceTimes& piece = to.pieces->back();
      (std::holds_alternative<workloads::CallSegment>(segment) ? piece.calls_s : piece.compute_s) += to.times.total() - before;
    }
    to.in_dense = !experts;
    if (to.calls.ports.transfer_s > sent) {
      if (sent == 0) to.calls.before_s = computed;
      to.calls.after_s = 0;
    } else if (sent > 0) {
      to.calls.after_s += to.times[Phase::compute] + to.times[Phase::recompute] - computed;
    }
  }
}

void UnitPricer::add(const workloads::Segment& segment, Phase phase, PassCost& to) {
  if (const auto* c = std::get_if<workloads::ComputeSegment>(&segment)) {
    const double computes = seconds(*c, to.stage);
    to.times[phase] += computes;
    if (c->behind_gather) to.calls.joined_s += computes;
  } else if (const auto* call = std::get_if<workloads::CallSegment>(&segment)) {
    const double all = seconds(call->what, to.stage) * call->repeat;
    to.times[call->what.group == GroupKind::cp ? Phase::cp : Phase::tp] += all;
    wait_for(call->what, all, all / call->repeat, to);
    send(call->what, call->repeat, to);
  } else if (const auto* ring = std::get_if<workloads::RingSegment>(&segment)) {
    add_ring(*ring, phase, to);
  } else if (const auto* split = std::get_if<workloads::SplitSegment>(&segment)) {
    add_split(*split, phase, to);
  } else if (const auto* expert = std::get_if<workloads::ExpertSegment>(&segment)) {
    add_experts(expert->experts, phase, to);
  } else {
    add_beside(std::get<workloads::BesideSegment>(segment), phase, to);
  }
}

// Equation (20): one piece of the collective alone, n - 1 pieces of both together, one piece of the product alone.
void UnitPricer::add_split(const workloads::SplitSegment& segment, Phase phase, PassCost& to) {
  const double product = paired_s(segment.product);
  const double collective = seconds(segment.collective, to.stage);
  const int beside = segment.splits - 1;
  const double total = collective + overlapped_s(beside * product, beside * collective, contentions_.tp) + product;
  to.times[phase] += segment.splits * product;
  to.times[Phase::tp] += total - segment.splits * product;
  wait_for(segment.collective, total - segment.splits * product, collective, to);
  send(segment.collective, segment.splits, to);
}

void UnitPricer::add_beside(const workloads::BesideSegment& segment, Phase phase, PassCost& to) {
  const double product = paired_s(segment.product);
  const double collective = seconds(segment.collective, to.stage);
  const double waited = overlapped_s(product, collective, contentions_.tp) - product;
  to.times[phase] += product;
  to.times[Phase::tp] += waited;
  wait_for(segment.collective, waited, collective, to);
  send(segment.collective, 1, to);
}

// Equation (21): c - 1 steps beside a transfer, and the last one alone.
void UnitPricer::add_ring(const workloads::RingSegment& segment, Phase phase, PassCost& to) {
  const int steps = workload_.parallel.cp;
  const double attention = paired_s(segment.ring.step);
  const Communication block = segment.ring.block();
  const double transfer = seconds(block, to.stage);
  const double together = workload_.overlap.cp ? overlapped_s(attention, transfer, contentions_.cp) : attention + transfer;
  const double total = (steps - 1) * together + attention;
  to.times[phase] += steps * attention;
  to.times[Phase::cp] += total - steps * attention;
  wait_for(block, total - steps * attention, transfer, to);
  send(block, steps - 1, to);
}

void UnitPricer::wait_for(const Communication& what, double waited_s, double all_s, PassCost& to) {
  const Fidelity fidelity = system_.simulation.collectives;
  if (waited_s <= 0 || fidelity == Fidelity::closed || (fidelity == Fidelity::automatic && what.group == GroupKind::tp)) return;
  to.calls.ports.add(prices_.times(what, to.stage).ports, waited_s / all_s);
}

void UnitPricer::send(const Communication& what, double times, PassCost& to) {
  if (!prices_.stages_at_nics().empty()) to.nic_s += times * prices_.times(what, to.stage).ports.nic_s;
}

// Micro-batches that get different tokens follow one another and count with their mean.
void UnitPricer::add_experts(const workloads::RoutedExperts& what, Phase phase, PassCost& to) {
  const std::vector<ChunkTimes>& all_chunks = experts_->chunks(what, to.layer, to.stage);
  const auto microbatches = static_cast<double>(all_chunks.size());
  double waited = 0;
  for (const ChunkTimes& slowest : all_chunks) {
    const double total = chunked_s(slowest, contentions_.ep) / microbatches;
    const double again = slowest.chunks * slowest.recompute_s / microbatches, work = slowest.chunks * slowest.work_s / microbatches;
    const double delayed = slowest.delayed_s / microbatches;
    if (to.pieces != nullptr) {
      PieceTimes& piece = to.pieces->back();
      piece.dispatch_s += slowest.chunks * slowest.dispatch_s / microbatches;
      piece.compute_s += again + work;
      piece.combine_s += slowest.chunks * slowest.combine_s / microbatches;
      piece.delayed_s += delayed;
    }
    to.times[Phase::recompute] += again;
    to.times[phase] += work + delayed;
    to.times[Phase::ep] += total - again - work - delayed;
    waited += total - again - work - delayed;
  }
  const workloads::ExpertCalls& calls = experts_->layer().calls(what.pass, 0, to.layer, 0);
  const double all = experts_->seconds(calls.dispatch, to.stage) + experts_->seconds(calls.combine, to.stage);
  for (const std::vector<Communication>* way : {&calls.dispatch, &calls.combine}) {
    for (const Communication& call : *way) {
      wait_for(call, waited, all, to);
      send(call, workload_.experts.chunks_of(to.layer), to);
    }
  }
}

}  // namespace rehearse::sim
