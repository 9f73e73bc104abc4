// Two things that run at once and slow each other down while they do.
#pragma once

#include <span>

#include "sim/cost/gpu.hpp"

namespace rehearse::sim {

// Seconds until both have ended when `compute_s` of computation and `communication_s` of communication start together: computation runs at
// 1/alpha and communication at 1/beta of its speed as long as the other lasts. Equations (20)-(22) print max(alpha c, beta k), which
// stretches the longer one to its end; here, as in the simulator, it is stretched only while they overlap. With alpha = beta = 1 both are
// max(c, k).
[[nodiscard]] double overlapped_s(double compute_s, double communication_s, const ContentionPair& pair);

// The pieces of a layer's experts, each dispatched, worked on and combined; equal pieces. delayed_s: of weight gradients that are computed
// while a piece is combined.
struct ChunkTimes {
  int chunks = 1;
  double dispatch_s = 0, recompute_s = 0, work_s = 0, combine_s = 0, delayed_s = 0;
  void raise_to(const ChunkTimes& other);  // each part the longer of the two
};
// Seconds of all chunks: the first dispatch alone, then each chunk's experts beside the next dispatch and the combine before, the last
// combine alone. Dispatch and combine share ports: their times add up.
[[nodiscard]] double chunked_s(const ChunkTimes& times, const ContentionPair& pair);

// One piece of a unit: computation, and around it the exchange of experts, or behind it tensor-parallel calls in a stream of their own.
struct PieceTimes {
  double dispatch_s = 0, compute_s = 0, combine_s = 0, calls_s = 0, delayed_s = 0;
};
// Equation (22): two slots side by side, unit by unit and piece by piece by turns, `second` first: computation in one stream, dispatches
// and combines in two others, each slot's pieces one after another.
struct PairTimes {
  double seconds = 0;                            // until both are over
  double first_late_s = 0;                       // how long after the other's first piece that of `first` begins
  double first_early_s = 0, second_early_s = 0;  // how long before the other's last piece that of this one is over
  bool operator==(const PairTimes&) const = default;
};
using Pieces = std::span<const PieceTimes>;  // of a unit
[[nodiscard]] PairTimes paired(std::span<const Pieces> first, std::span<const Pieces> second, const ContentionPair& pair);

}  // namespace rehearse::sim
