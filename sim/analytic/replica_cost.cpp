#include "sim/analytic/replica_cost.hpp"

#include <algorithm>

#include "sim/analytic/overlap.hpp"

namespace rehearse::sim {
namespace {

// Communication of n units, one after another, beside the computation of the other units: unit k's communication may start when the
// computation before it has ended. `alone_s` is the communication that has nothing left to hide behind (the first gather, the last
// reduction).
double chain_exposed_s(double beside_compute_s, double beside_communication_s, double alone_s, const ContentionPair& pair) {
  return overlapped_s(beside_compute_s, beside_communication_s, pair) - beside_compute_s + alone_s;
}

// How much longer computation takes beside communication that starts with it.
double compute_stretch_s(double compute_s, double communication_s, const ContentionPair& pair) {
  return std::min(pair.alpha * compute_s, pair.beta * communication_s) * (1 - 1 / pair.alpha);
}

}  // namespace

double ReplicaRules::exposed_s(const UnitTerms& unit, workloads::Slot::Kind slot) const {
  using Kind = workloads::Slot::Kind;
  if (!sync.replicated()) return 0;
  const bool reduces = sync.reduce_each_microbatch && (slot == Kind::backward || slot == Kind::backward_weight);
  return exposed_gather_s(unit, slot) + (reduces ? unit.reduce_s : 0);
}

// The stack's own time before it runs beside the first gathers: what of them it leaves.
double ReplicaCost::left_by_overhead_s(double gathers_s) const {
  return std::max(0.0, gathers_s - rules_.pair.alpha * rules_.overhead_s / rules_.pair.beta);
}

// Forward takes chunk 0 through a turn of micro-batches before it needs the weights of chunk 1, and so on: the longest wait of a chunk
// counts.
double ReplicaCost::at_start_s() const {
  if (!sync_.replicated() || !sync_.overlap_parameters || !sync_.gathers_weights) return 0;
  const double first = left_by_overhead_s(stage_.chunks.front().empty() ? 0 : stage_.chunks.front().front()->gather_s);
  double exposed = 0, before = 0, gathers = 0;
  for (const auto& units : stage_.chunks) {
    double forward = 0;
    for (const UnitTerms* unit : units) {
      forward += unit->forward_s;
      gathers += unit->gather_s;
    }
    exposed = std::max(exposed, chain_exposed_s(before + forward, left_by_overhead_s(gathers) - first, first, stage_.first_forward));
    before += rules_.turn * forward;
  }
  return exposed + compute_stretch_s(rules_.overhead_s, gathers, rules_.pair);
}

double ReplicaCost::reduce_in_line_s() const {
  return sync_.replicated() && !sync_.overlap_gradients && !sync_.reduce_each_microbatch ? stage_.reduce_s : 0;
}

// Likewise backward: the gradients of chunk c are complete after its last micro-batch, with a turn of each chunk before it still to come.
double ReplicaCost::reduce_at_end_s() const {
  if (!sync_.replicated() || sync_.reduce_each_microbatch) return 0;
  if (!sync_.overlap_gradients) return stage_.reduce_s;
  const double last = stage_.chunks.front().empty() ? 0 : stage_.chunks.front().front()->reduce_s;
  double exposed = 0, after = 0, reductions = -last;
  for (const auto& units : stage_.chunks) {
    double backward = 0;
    for (const UnitTerms* unit : units) {
      backward += unit->last_backward_s();
      reductions += unit->reduce_s;
    }
    // The first reduction starts when the first unit's backward has ended.
    const double beside = after + backward - (units.empty() ? 0 : units.back()->last_backward_s());
    exposed = std::max(exposed, chain_exposed_s(beside, reductions, last, stage_.last_backward));
    after += rules_.turn * backward;
  }
  return exposed;
}

double ReplicaCost::reduced_s(std::span<const Completed> here, std::span<const Completed> mirrored, double end_s,
                              std::vector<std::pair<double, double>>& ready) const {
  if (!sync_.replicated() || !sync_.overlap_gradients || sync_.reduce_each_microbatch) return end_s + reduce_at_end_s();
  ready.clear();  // when a unit's gradients are complete, and how long their reduction takes
  const auto last_s = [](const Completed& slot, const UnitTerms& unit) { return slot.whole ? unit.whole_s : unit.last_backward_s(); };
  for (std::size_t c = 0; c < here.size(); ++c) {
    double left = 0, left_there = 0;  // of the slot after the unit
    for (const UnitTerms* unit : stage_.chunks[c]) {
      ready.emplace_back(here[c].end_s - left, unit->reduce_s);
      left += last_s(here[c], *unit);
      if (mirrored.empty()) continue;
      ready.back().first = std::max(ready.back().first, mirrored[c].end_s - left_there);
      left_there += last_s(mirrored[c], *unit);
    }
  }
  std::ranges::sort(ready);
  double free = 0, last = 0, hidden = 0, late = 0;
  for (const ChunkTerms& units : stage_.chunks) {
    for (const UnitTerms* unit : units) late += unit->late_reduce_s;
  }
  for (const auto& [at, seconds] : ready) {
    free = std::max(free, at) + seconds;
    hidden += seconds;
    last = seconds;
  }
  hidden = std::max(0.0, hidden - std::max(last, free - end_s));
  return std::max(free, end_s + (late > 0 ? 0 : last) + stage_.last_backward.beta * hidden * (1 - 1 / stage_.last_backward.alpha)) + late;
}

double ReplicaCost::first_forward_stretch_s(double elapsed_s) const {
  if (!sync_.replicated() || !sync_.overlap_parameters || !sync_.gathers_weights) return 0;
  double gathers = 0;
  for (const auto& units : stage_.chunks)
    for (const UnitTerms* unit : units) gathers += unit->gather_s;
  gathers = left_by_overhead_s(gathers) - elapsed_s;
  double compute = 0;
  for (const UnitTerms* unit : stage_.chunks.front()) compute += unit->forward_s;
  return compute_stretch_s(compute, std::max(0.0, gathers), stage_.first_forward);
}

double ReplicaCost::last_backward_stretch_s() const {
  if (!sync_.replicated() || !sync_.overlap_gradients || sync_.reduce_each_microbatch) return 0;
  // Reductions under way during the last backward: of the first chunk, and what the turns before it have left of the others'.
  double left = 0, reductions = 0, compute = 0;
  for (std::size_t c = stage_.chunks.size(); c-- > 0;) {
    double backward = 0, chunk_reductions = 0;
    for (const UnitTerms* unit : stage_.chunks[c]) {
      backward += unit->last_backward_s();
      chunk_reductions += unit->reduce_s;
    }
    if (c + 1 < stage_.chunks.size()) left = std::max(0.0, left - (rules_.turn - 1) * backward);
    reductions = left + chunk_reductions;
    left = std::max(0.0, reductions - backward);
    compute = backward;
  }
  if (stage_.chunks.size() == 1 && !stage_.chunks.front().empty()) compute -= stage_.chunks.front().back()->last_backward_s();
  return compute_stretch_s(compute, reductions, stage_.last_backward);
}

double ReplicaCost::gather_at_end_s() const { return sync_.overlap_parameters || !sync_.gathers_weights ? 0 : stage_.gather_s; }

}  // namespace rehearse::sim
