// Where the memory of a pipeline stage can be at its peak, whatever its units hold: a slot with the same neighbours as another one, and
// with no more of any chunk kept, activations or gradients, needs no more memory. What is left is the warm-up and one period of the
// schedule, however many micro-batches there are.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "sim/result.hpp"
#include "workloads/compiled.hpp"
#include "workloads/unit_memory.hpp"
#include "workloads/whole_gradients.hpp"

namespace rehearse::sim {

class PeakSlots {
 public:
  // Of a stage whose slots run one at a time and whose chunks all have units.
  PeakSlots(const workloads::Workload& workload, const workloads::Compiled& compiled, int stage);

  struct Neighbour {
    bool exists = false;
    workloads::Slot::Kind kind = workloads::Slot::Kind::forward;
    std::uint16_t chunk = 0;
    [[nodiscard]] bool forward() const { return kind == workloads::Slot::Kind::forward; }
    bool operator==(const Neighbour&) const = default;
  };
  struct Entry {
    workloads::Slot slot;
    Neighbour before, after;
    bool receives = false;   // the slot after it gets a message from another stage
    bool essential = false;  // no other slot, later ones included, needs as much: the peak is the same without it, its place may not be
    std::uint32_t kept = 0;  // index of its counts and states
  };
  [[nodiscard]] const std::vector<Entry>& entries() const { return entries_; }  // in the order of the schedule
  // [chunk] micro-batches whose activations are kept when the slot begins.
  [[nodiscard]] std::span<const std::int32_t> counts(const Entry& entry) const { return std::span(counts_).subspan(entry.kept, chunks_); }
  // [chunk] with ZeRO-2.
  [[nodiscard]] std::span<const workloads::ChunkGradients> gradients(const Entry& entry) const {
    return std::span(gradients_).subspan(entry.kept, chunks_);
  }

 private:
  std::size_t chunks_;
  std::vector<Entry> entries_;
  std::vector<std::int32_t> counts_;
  std::vector<workloads::ChunkGradients> gradients_;
};

// The units of a stage, chunk after chunk in forward order. `memories` may change between two searches, in what replicas exchange alone.
struct HeldUnits {
  struct Chunk {
    std::uint32_t first = 0, end = 0;                   // of `units`
    bool first_idle = false;                            // its first unit has nothing to do in the first half of a backward
    double activations = 0, left = 0;                   // of a micro-batch; what stays of them, and gradients, to the end of its backward
    std::array<double, workloads::Slot::kinds> work{};  // [Slot::Kind] most that one of its units holds while it is at work
  };
  std::span<const workloads::UnitMemory> memories;  // distinct ones; must outlive this
  std::vector<std::uint32_t> units;                 // indices of them
  std::vector<Chunk> chunks;
  std::vector<double> whole_gradients;                             // [chunk] beside their shard; empty: they never lie whole for a while
  double most_in_slots = std::numeric_limits<double>::infinity();  // that they hold, whole gradients and what replicas exchange left out

  // Adds a chunk of a stage's program, whose units hold these of the memories. Whether PeakSlots can have the answer: it has units, of
  // which at most the first is ever idle.
  bool add(const std::vector<workloads::Unit>& chunk, bool splits_backward, std::span<const std::uint32_t> holding);
  // When all are added. Whether sums of their activations are exact in any order: binary fractions of moderate size.
  bool add_up(int microbatches);
  // Fills in most_in_slots, so that a stage whose slots hold too little to be of interest is told by that.
  void look_through(const PeakSlots& slots);
  // Of a slot: not less than its units hold in any turn, whole gradients and what replicas exchange left out.
  [[nodiscard]] double most_in(const PeakSlots& slots, const PeakSlots::Entry& entry) const;

  [[nodiscard]] std::span<const std::uint32_t> of(const Chunk& chunk) const {
    return std::span(units).subspan(chunk.first, chunk.end - chunk.first);
  }
};

struct PeakMemory {
  MemoryBytes held;
  workloads::Slot slot;
  std::size_t unit = 0;  // index in its chunk
  bool found = false;    // else nothing needs more than `always`, which is held then
};

// The largest sum of what is held `always`, kept between forward and backward, and needed by the unit at hand: the first such turn.
// message_bytes: of a message that is received while the slot before it runs; 0 without overlap.pp. at_least: peaks of no more are of no
// interest; there `found` is false.
[[nodiscard]] PeakMemory peak_of(const PeakSlots& slots, const HeldUnits& units, const workloads::ReplicaSync& sync, double message_bytes,
                                 const MemoryBytes& always, bool essential_alone = false, double at_least = 0);

}  // namespace rehearse::sim
