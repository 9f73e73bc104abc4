#include "sim/memory/peak_slots.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "workloads/unit_at_work.hpp"

namespace rehearse::sim {

using workloads::AtWork;
using workloads::Slot;
using workloads::UnitAtWork;
using workloads::UnitMemory;

namespace {

// Whether only what is kept can differ between two entries of one chunk and kind.
bool alike(const PeakSlots::Entry& one, const PeakSlots::Entry& other) {
  return one.before == other.before && one.after == other.after && one.receives == other.receives;
}

// What is kept when a slot begins.
struct Kept {
  std::int64_t all;  // the sum of counts
  std::span<const std::int32_t> counts;
  std::span<const workloads::ChunkGradients> gradients;
};

// Of two alike but for what is kept.
bool covers(const Kept& one, const Kept& other) {
  if (one.all < other.all) return false;
  for (std::size_t c = 0; c < one.counts.size(); ++c) {
    if (one.counts[c] < other.counts[c] || one.gradients[c] < other.gradients[c]) return false;
  }
  return true;
}

}  // namespace

PeakSlots::PeakSlots(const workloads::Workload& workload, const workloads::Compiled& compiled, int stage)
    : chunks_(static_cast<std::size_t>(compiled.shape.chunks)) {
  const std::vector<Slot> order = workloads::slots_of(workload, stage);
  const auto neighbour = [&](std::size_t k) {
    if (k >= order.size()) return Neighbour{};
    return Neighbour{true, order[k].kind, static_cast<std::uint16_t>(order[k].chunk)};
  };
  std::vector<std::span<const Slot>> one_by_one;
  one_by_one.reserve(order.size());
  for (const Slot& slot : order) one_by_one.emplace_back(&slot, 1);
  const std::vector<workloads::ChunkGradients> states = workloads::chunk_gradients(one_by_one, chunks_);
  const workloads::StageWays ways(*compiled.schedule, compiled.shape, stage);
  constexpr std::uint32_t none = -1;
  // Essential entries by chunk and kind: the latest, and of each the one before it. What another entry covers, an essential one does.
  std::vector<std::uint32_t> latest(Slot::kinds * chunks_, none), earlier;
  std::vector<std::int64_t> all;  // [entry] as Kept::all
  std::vector<std::int32_t> now(chunks_);
  std::int64_t all_now = 0;
  const auto kept = [&](std::uint32_t i) { return Kept{all[i], counts(entries_[i]), gradients(entries_[i])}; };
  for (std::size_t k = 0; k < order.size(); ++k) {
    const Slot& slot = order[k];
    const bool receives = k + 1 < order.size() && ways.of(order[k + 1]).source.has_value();
    const Entry entry{slot, neighbour(k - 1), neighbour(k + 1), receives, true, static_cast<std::uint32_t>(counts_.size())};
    const Kept here{all_now, now, std::span(states).subspan(k * chunks_, chunks_)};
    std::uint32_t& last = latest[slot.place()];
    std::uint32_t covering = last;
    while (covering != none && !(alike(entries_[covering], entry) && covers(kept(covering), here))) covering = earlier[covering];
    if (covering == none) {
      for (std::uint32_t* i = &last; *i != none;) {
        if (!alike(entries_[*i], entry) || !covers(here, kept(*i))) {
          i = &earlier[*i];
          continue;
        }
        entries_[*i].essential = false;
        *i = earlier[*i];
      }
      earlier.push_back(std::exchange(last, static_cast<std::uint32_t>(entries_.size())));
      all.push_back(all_now);
      counts_.insert(counts_.end(), here.counts.begin(), here.counts.end());
      gradients_.insert(gradients_.end(), here.gradients.begin(), here.gradients.end());
      entries_.push_back(entry);
    }
    const int change = slot.kind == Slot::Kind::forward ? 1 : workloads::makes_weight_gradient(slot.kind) ? -1 : 0;
    now[static_cast<std::size_t>(slot.chunk)] += change;
    all_now += change;
  }
}

bool HeldUnits::add(const std::vector<workloads::Unit>& chunk, bool splits_backward, std::span<const std::uint32_t> holding) {
  const auto idle = [&](const workloads::Unit& unit) { return splits_backward && unit.program->backward_input.empty(); };
  const auto first = static_cast<std::uint32_t>(units.size());
  units.insert(units.end(), holding.begin(), holding.end());
  chunks.push_back({.first = first, .end = static_cast<std::uint32_t>(units.size())});
  if (chunk.empty()) return false;
  chunks.back().first_idle = idle(chunk.front());
  return !(chunks.back().first_idle && chunk.size() == 1) && std::none_of(chunk.begin() + 1, chunk.end(), idle);
}

bool HeldUnits::add_up(int microbatches) {
  constexpr double fraction = 16, exact = 4503599627370496;  // 2^52: sums stay below it in units of 1 / fraction
  double all = 0;
  bool whole = true;
  for (Chunk& chunk : chunks) {
    for (const std::uint32_t unit : of(chunk)) {
      const double activations = memories[unit].activations;
      whole = whole && activations * fraction == std::floor(activations * fraction);
      chunk.activations += activations;
      chunk.left += memories[unit].gradients + memories[unit].left;
    }
    all += chunk.activations;
    std::uint32_t last = -1;
    for (const std::uint32_t unit : of(chunk)) {
      if (unit == std::exchange(last, unit)) continue;
      for (std::size_t kind = 0; kind < chunk.work.size(); ++kind) {
        double work = 0;
        for (const AtWork& one : UnitAtWork(static_cast<Slot::Kind>(kind), memories[unit], {})) work += one.bytes;
        chunk.work[kind] = std::max(chunk.work[kind], work);
      }
    }
  }
  return whole && all * fraction * microbatches < exact;
}

namespace {

double kept_before(const PeakSlots& slots, const HeldUnits& units, const PeakSlots::Entry& entry) {
  const std::span<const std::int32_t> counts = slots.counts(entry);
  double kept = 0;
  for (std::size_t c = 0; c < counts.size(); ++c) {
    if (counts[c] > 0) kept += counts[c] * units.chunks[c].activations;
  }
  return kept;
}

}  // namespace

double HeldUnits::most_in(const PeakSlots& slots, const PeakSlots::Entry& entry) const {
  const Chunk& chunk = chunks[static_cast<std::size_t>(entry.slot.chunk)];
  const double most = kept_before(slots, *this, entry) + chunk.work[static_cast<std::size_t>(entry.slot.kind)];
  if (entry.slot.kind == Slot::Kind::forward) return most + chunk.activations;
  return workloads::makes_weight_gradient(entry.slot.kind) ? most + chunk.left : most;
}

void HeldUnits::look_through(const PeakSlots& slots) {
  most_in_slots = 0;
  for (const PeakSlots::Entry& entry : slots.entries()) most_in_slots = std::max(most_in_slots, most_in(slots, entry));
}

namespace {

// More than what sums in another order may come to; relative.
constexpr double by_order_of_sums = 1e-9;

class Peak {
 public:
  // Above `at_least` bytes.
  Peak(const PeakSlots& slots, const HeldUnits& units, const workloads::ReplicaSync& sync, double message_bytes, const MemoryBytes& always,
       double at_least)
      : slots_(slots),
        units_(units),
        sync_(sync),
        message_(message_bytes),
        always_(always),
        always_bytes_(always.total()),
        most_(std::max(at_least, always_bytes_)) {
    for (const UnitMemory& unit : units.memories) replicas_ = std::max(replicas_, 2 * (unit.gathered + unit.bucket));
  }

  void find(bool essential_alone) {
    const double gradients = std::accumulate(units_.whole_gradients.begin(), units_.whole_gradients.end(), 0.0);
    if (ceiling(units_.most_in_slots + gradients + message_) <= most_) return;
    std::vector<std::pair<double, const PeakSlots::Entry*>> high;
    for (const PeakSlots::Entry& entry : slots_.entries()) {
      if (!entry.essential && essential_alone) continue;
      if (const double most = ceiling(entry); most > most_) high.emplace_back(most, &entry);
    }
    if (high.empty()) return;
    const double before = most_, reached = most_of(*std::ranges::max_element(high)->second);
    most_ = before;
    for (const auto& [most, entry] : high) {
      if (most >= reached) look_at(*entry);
    }
  }

  [[nodiscard]] const PeakMemory& result() const { return peak_; }

 private:
  [[nodiscard]] double whole_gradients(const PeakSlots::Entry& entry) const {
    return workloads::whole_now(slots_.gradients(entry), units_.whole_gradients, sync_.overlap_gradients);
  }

  // Not less than any turn of the slot holds.
  [[nodiscard]] double ceiling(const PeakSlots::Entry& entry) const {
    return ceiling(units_.most_in(slots_, entry) + whole_gradients(entry) + (entry.receives ? message_ : 0));
  }
  [[nodiscard]] double ceiling(double in_slot) const { return (always_bytes_ + in_slot + replicas_) * (1 + by_order_of_sums); }

  void look_at(const PeakSlots::Entry& entry) {
    double gradients = whole_gradients(entry);
    double kept = kept_before(slots_, units_, entry);
    const Slot::Kind kind = entry.slot.kind;
    const HeldUnits::Chunk& chunk = chunk_at(entry.slot.chunk);
    const std::size_t units = chunk.end - chunk.first, count = turns(kind, chunk);
    for (std::size_t k = 0; k < count; ++k) {
      const double own = unit_at(kind, chunk, k).activations;
      if (kind == Slot::Kind::forward) kept += own;
      if (!amid_others_alike(kind, chunk, k, count)) {
        MemoryBytes now = always_;
        now[MemoryUse::activations] += kept;
        now[MemoryUse::gradients] += gradients;
        add_work(entry, k, now);
        compare(entry, kind == Slot::Kind::forward ? k : units - 1 - k, now);
      }
      if (!workloads::makes_weight_gradient(kind)) continue;
      kept -= own - unit_at(kind, chunk, k).left;
      gradients += unit_at(kind, chunk, k).gradients;
    }
  }
  double most_of(const PeakSlots::Entry& entry) {
    look_at(entry);
    return most_;
  }

  // The embedding passes no gradient on: where backwards are split, it has nothing to do in their first half, which comes to it last.
  [[nodiscard]] static std::size_t turns(Slot::Kind kind, const HeldUnits::Chunk& chunk) {
    return chunk.end - chunk.first - (kind == Slot::Kind::backward_input && chunk.first_idle ? 1 : 0);
  }
  [[nodiscard]] const HeldUnits::Chunk& chunk_at(int chunk) const { return units_.chunks[static_cast<std::size_t>(chunk)]; }
  // The k-th unit that a slot works on.
  [[nodiscard]] std::uint32_t index_at(Slot::Kind kind, const HeldUnits::Chunk& chunk, std::size_t k) const {
    return units_.units[kind == Slot::Kind::forward ? chunk.first + k : chunk.end - 1 - k];
  }
  [[nodiscard]] const UnitMemory& unit_at(Slot::Kind kind, const HeldUnits::Chunk& chunk, std::size_t k) const {
    return units_.memories[index_at(kind, chunk, k)];
  }
  // Whether the next turn of a forward, or the one before of a backward or the one behind it, holds the same and has more kept: what a
  // backward keeps of activations falls, and of gradients rises, by as much in each of them.
  [[nodiscard]] bool amid_others_alike(Slot::Kind kind, const HeldUnits::Chunk& chunk, std::size_t k, std::size_t count) const {
    const std::size_t back = kind == Slot::Kind::forward ? 1 : 2;
    if (k < back || k + 3 - back >= count) return false;
    const std::uint32_t own = index_at(kind, chunk, k);
    for (std::size_t i = k - back; i < k + 4 - back; ++i) {
      if (index_at(kind, chunk, i) != own) return false;
    }
    return kind != Slot::Kind::forward || units_.memories[own].activations >= 1;
  }

  // In the k-th turn of the slot, with what reaches over from the turns beside it: in the order of workloads::HeldMemory's list, so that
  // sums are the same to the bit.
  void add_work(const PeakSlots::Entry& entry, std::size_t k, MemoryBytes& now) const {
    const Slot::Kind kind = entry.slot.kind;
    const HeldUnits::Chunk& chunk = chunk_at(entry.slot.chunk);
    const PeakSlots::Neighbour &before = entry.before, &after = entry.after;
    if (k > 0) {
      add_if(&AtWork::until_after, kind, unit_at(kind, chunk, k - 1), now);
    } else if (before.exists) {
      const HeldUnits::Chunk& other = chunk_at(before.chunk);
      add_if(&AtWork::until_after, before.kind, unit_at(before.kind, other, turns(before.kind, other) - 1), now);
    }
    for (const AtWork& one : UnitAtWork(kind, unit_at(kind, chunk, k), sync_)) now[one.use] += one.bytes;
    if (k + 1 < turns(kind, chunk)) {
      add_if(&AtWork::from_before, kind, unit_at(kind, chunk, k + 1), now);
    } else if (after.exists) {
      add_if(&AtWork::from_before, after.kind, unit_at(after.kind, chunk_at(after.chunk), 0), now);
    }
    if (entry.receives) now[MemoryUse::communication] += message_;
  }
  void add_if(bool AtWork::*reaches_over, Slot::Kind kind, const UnitMemory& unit, MemoryBytes& now) const {
    for (const AtWork& one : UnitAtWork(kind, unit, sync_)) {
      if (one.*reaches_over) now[one.use] += one.bytes;
    }
  }

  void compare(const PeakSlots::Entry& entry, std::size_t unit, const MemoryBytes& now) {
    const double total = now.total();
    if (total <= most_) return;
    most_ = total;
    peak_ = {now, entry.slot, unit, true};
  }

  const PeakSlots& slots_;
  const HeldUnits& units_;
  const workloads::ReplicaSync& sync_;
  double message_;
  const MemoryBytes& always_;
  double always_bytes_;
  double most_;
  double replicas_ = 0;  // most that a unit and its neighbours hold of what replicas exchange
  PeakMemory peak_;
};

}  // namespace

PeakMemory peak_of(const PeakSlots& slots, const HeldUnits& units, const workloads::ReplicaSync& sync, double message_bytes,
                   const MemoryBytes& always, bool essential_alone, double at_least) {
  Peak peak(slots, units, sync, message_bytes, always, at_least);
  peak.find(essential_alone);
  PeakMemory found = peak.result();
  if (!found.found) found.held = always;
  return found;
}

}  // namespace rehearse::sim
