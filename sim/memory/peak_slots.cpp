#include "sim/memory/peak_slots.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace rehearse::sim {

using workloads::Slot;
using workloads::UnitMemory;

namespace {

bool makes_input_gradient(const Slot& slot) { return slot.kind == Slot::Kind::backward || slot.kind == Slot::Kind::backward_input; }
bool makes_weight_gradient(const Slot& slot) { return slot.kind == Slot::Kind::backward || slot.kind == Slot::Kind::backward_weight; }

}  // namespace

PeakSlots::PeakSlots(const workloads::Workload& workload, const workloads::Compiled& compiled, int stage)
    : chunks_(static_cast<std::size_t>(compiled.shape.chunks)) {
  const std::vector<Slot> order = workloads::slots_of(workload, stage);
  const auto neighbour = [&](std::size_t k) {
    if (k >= order.size()) return Neighbour{};
    return Neighbour{true, order[k].kind, static_cast<std::uint16_t>(order[k].chunk)};
  };
  std::vector<std::vector<Slot>> one_by_one;
  for (const Slot& slot : order) one_by_one.push_back({slot});
  const std::vector<workloads::ChunkGradients> states = workloads::chunk_gradients(one_by_one, chunks_);
  std::vector<std::int32_t> now(chunks_);
  std::map<std::pair<int, int>, std::vector<std::size_t>> known;  // entries by kind and chunk
  for (std::size_t k = 0; k < order.size(); ++k) {
    const Slot& slot = order[k];
    const bool receives = k + 1 < order.size() && workloads::source_of(*compiled.schedule, compiled.shape, stage, order[k + 1]).has_value();
    const Entry entry{slot, neighbour(k - 1), neighbour(k + 1), receives, false, static_cast<std::uint32_t>(counts_.size())};
    std::vector<std::size_t>& alike = known[{static_cast<int>(slot.kind), slot.chunk}];
    counts_.insert(counts_.end(), now.begin(), now.end());
    const auto here = states.begin() + static_cast<std::ptrdiff_t>(k * chunks_);
    gradients_.insert(gradients_.end(), here, here + static_cast<std::ptrdiff_t>(chunks_));
    if (std::any_of(alike.rbegin(), alike.rend(), [&](std::size_t i) { return covers(entries_[i], entry); })) {
      counts_.resize(entry.kept);
      gradients_.resize(entry.kept);
    } else {
      alike.push_back(entries_.size());
      entries_.push_back(entry);
    }
    if (slot.kind == Slot::Kind::forward) ++now[static_cast<std::size_t>(slot.chunk)];
    if (makes_weight_gradient(slot)) --now[static_cast<std::size_t>(slot.chunk)];
  }
  mark_essential();
}

bool PeakSlots::covers(const Entry& one, const Entry& other) const {
  if (one.slot.kind != other.slot.kind || one.slot.chunk != other.slot.chunk || one.before != other.before || one.after != other.after ||
      one.receives != other.receives) {
    return false;
  }
  const std::span<const std::int32_t> more = counts(one), less = counts(other);
  return std::ranges::equal(more, less, std::greater_equal<>()) &&
         std::ranges::equal(gradients(one), gradients(other), std::greater_equal<>());
}

void PeakSlots::mark_essential() {
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    bool covered = false;
    for (std::size_t k = i + 1; k < entries_.size() && !covered; ++k) covered = covers(entries_[k], entries_[i]);
    entries_[i].essential = !covered;
  }
}

bool HeldUnits::add(const std::vector<workloads::Unit>& chunk, bool splits_backward) {
  first.push_back(static_cast<std::uint32_t>(units.size()));
  const auto idle = [&](const workloads::Unit& unit) { return splits_backward && unit.program->backward_input.empty(); };
  if (chunk.empty()) return false;
  first_idle.push_back(idle(chunk.front()));
  return !(first_idle.back() && chunk.size() == 1) && std::none_of(chunk.begin() + 1, chunk.end(), idle);
}

bool HeldUnits::add_up_exactly(int microbatches) const {
  constexpr double fraction = 16, exact = 4503599627370496;  // 2^52: sums stay below it in units of 1 / fraction
  double all = 0;
  for (const UnitMemory* unit : units) {
    const double scaled = unit->activations * fraction;
    if (scaled != std::floor(scaled)) return false;
    all += scaled;
  }
  return all * microbatches < exact;
}

namespace {

class Peak {
 public:
  Peak(const HeldUnits& units, const workloads::ReplicaSync& sync, double message_bytes, const MemoryBytes& always)
      : units_(units), sync_(sync), message_(message_bytes), always_(always), most_(always.total()) {
    for (std::size_t c = 0; c + 1 < units.first.size(); ++c) {
      double& chunk = of_chunk_.emplace_back();
      for (const UnitMemory* unit : units.chunk(c)) chunk += unit->activations;
    }
  }

  void look_at(const PeakSlots::Entry& entry, std::span<const std::int32_t> counts, std::span<const workloads::ChunkGradients> gradients) {
    gradients_ = workloads::whole_now(gradients, units_.whole_gradients, sync_.overlap_gradients);
    double kept = 0;
    for (std::size_t c = 0; c < counts.size(); ++c) {
      if (counts[c] > 0) kept += counts[c] * of_chunk_[c];
    }
    const bool forward = entry.slot.kind == Slot::Kind::forward;
    const auto units = units_.chunk(static_cast<std::size_t>(entry.slot.chunk));
    for (std::size_t k = 0; k < turns(entry.slot.kind, static_cast<std::size_t>(entry.slot.chunk)); ++k) {
      const std::size_t at = forward ? k : units.size() - 1 - k;
      if (forward) kept += units[at]->activations;
      compare(entry, at, at_turn(entry, units, k, kept));
      if (makes_weight_gradient(entry.slot)) kept -= units[at]->activations;
    }
  }

  [[nodiscard]] const PeakMemory& result() const { return peak_; }

 private:
  // The embedding passes no gradient on: where backwards are split, it has nothing to do in their first half, which comes to it last.
  [[nodiscard]] bool ends_early(Slot::Kind kind, std::size_t chunk) const {
    return kind == Slot::Kind::backward_input && units_.first_idle[chunk];
  }
  [[nodiscard]] std::size_t turns(Slot::Kind kind, std::size_t chunk) const {
    return units_.chunk(chunk).size() - (ends_early(kind, chunk) ? 1 : 0);
  }

  // The k-th unit of the slot, in the order in which the slot works on them.
  [[nodiscard]] MemoryBytes at_turn(const PeakSlots::Entry& entry, std::span<const UnitMemory* const> units, std::size_t k,
                                    double kept) const {
    const Slot& slot = entry.slot;
    const bool forward = slot.kind == Slot::Kind::forward;
    const auto turn = [&](std::size_t i) { return units[forward ? i : units.size() - 1 - i]; };
    const UnitMemory& unit = *turn(k);
    MemoryBytes now = always_;
    now[MemoryUse::activations] += kept;
    now[MemoryUse::gradients] += gradients_;
    // Each sum in the order of workloads::HeldMemory's list, to the same bit.
    now[MemoryUse::temporary] += unit.gathered;
    if (makes_weight_gradient(slot)) now[MemoryUse::temporary] += unit.weight_temporary;
    if (forward) now[MemoryUse::temporary] += unit.forward_temporary;
    if (makes_input_gradient(slot)) now[MemoryUse::temporary] += unit.backward_temporary;
    if (sync_.overlap_parameters) {
      if (k + 1 < turns(slot.kind, static_cast<std::size_t>(slot.chunk))) {
        now[MemoryUse::temporary] += turn(k + 1)->gathered;
      } else if (entry.after.exists) {
        const auto next = units_.chunk(entry.after.chunk);
        now[MemoryUse::temporary] += (entry.after.forward() ? next.front() : next.back())->gathered;
      }
    }
    if (sync_.overlap_gradients) {
      if (k > 0) {
        if (!forward) now[MemoryUse::communication] += turn(k - 1)->bucket;
      } else if (entry.before.exists && !entry.before.forward()) {
        const PeakSlots::Neighbour& before = entry.before;
        now[MemoryUse::communication] += units_.chunk(before.chunk)[ends_early(before.kind, before.chunk) ? 1 : 0]->bucket;
      }
    }
    if (forward) now[MemoryUse::communication] += unit.forward_communication;
    if (makes_input_gradient(slot)) now[MemoryUse::communication] += unit.backward_communication;
    if (!forward) now[MemoryUse::communication] += unit.bucket;
    if (entry.receives) now[MemoryUse::communication] += message_;
    return now;
  }

  void compare(const PeakSlots::Entry& entry, std::size_t unit, const MemoryBytes& now) {
    const double total = now.total();
    if (total <= most_) return;
    most_ = total;
    peak_ = {now, entry.slot, unit, true};
  }

  const HeldUnits& units_;
  const workloads::ReplicaSync& sync_;
  double message_;
  const MemoryBytes& always_;
  double most_;
  double gradients_ = 0;          // that lie whole in the slot at hand
  std::vector<double> of_chunk_;  // activations of a micro-batch
  PeakMemory peak_;
};

}  // namespace

PeakMemory peak_of(const PeakSlots& slots, const HeldUnits& units, const workloads::ReplicaSync& sync, double message_bytes,
                   const MemoryBytes& always, bool essential_alone) {
  Peak peak(units, sync, message_bytes, always);
  for (const PeakSlots::Entry& entry : slots.entries()) {
    if (entry.essential || !essential_alone) peak.look_at(entry, slots.counts(entry), slots.gradients(entry));
  }
  PeakMemory found = peak.result();
  if (!found.found) found.held = always;
  return found;
}

}  // namespace rehearse::sim
