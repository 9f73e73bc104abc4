#include "sim/analytic/overlap.hpp"

namespace rehearse::sim {

double overlapped_s(double compute_s, double communication_s, const ContentionPair& pair) {
  const double stretched_compute = pair.alpha * compute_s;
  const double stretched_communication = pair.beta * communication_s;
  if (stretched_compute >= stretched_communication) return compute_s + stretched_communication * (1 - 1 / pair.alpha);
  return communication_s + stretched_compute * (1 - 1 / pair.beta);
}

void ChunkTimes::raise_to(const ChunkTimes& other) {
  chunks = other.chunks;
  dispatch_s = std::max(dispatch_s, other.dispatch_s);
  recompute_s = std::max(recompute_s, other.recompute_s);
  work_s = std::max(work_s, other.work_s);
  combine_s = std::max(combine_s, other.combine_s);
  delayed_s = std::max(delayed_s, other.delayed_s);
}

double chunked_s(const ChunkTimes& times, const ContentionPair& pair) {
  if (times.delayed_s > 0)
    return times.dispatch_s + times.recompute_s + times.work_s + overlapped_s(times.delayed_s, times.combine_s, pair);
  const double experts = times.recompute_s + times.work_s;
  double total = times.dispatch_s + times.combine_s;
  for (int i = 0; i < times.chunks; ++i) {
    const double beside = (i + 1 < times.chunks ? times.dispatch_s : 0) + (i > 0 ? times.combine_s : 0);
    total += overlapped_s(experts, beside, pair);
  }
  return total;
}

PairTimes paired(std::span<const Pieces> first, std::span<const Pieces> second, const ContentionPair& pair) {
  const std::span<const Pieces> slots[2] = {first, second};
  double ready[2] = {0, 0}, compute_free = 0, dispatch_free = 0, combine_free = 0, calls_free = 0, computes = 0, exchanges = 0;
  for (std::size_t k = 0; k < std::max(first.size(), second.size()); ++k) {
    const auto count = [&](int slot) { return k < slots[slot].size() ? slots[slot][k].size() : 0; };
    for (std::size_t piece = 0; piece < std::max(count(0), count(1)); ++piece) {
      for (const int slot : {1, 0}) {
        if (piece >= count(slot)) continue;
        const PieceTimes& now = slots[slot][k][piece];
        if (now.dispatch_s > 0) ready[slot] = dispatch_free = std::max(ready[slot], dispatch_free) + now.dispatch_s;
        ready[slot] = compute_free = std::max(ready[slot], compute_free) + now.compute_s;
        if (now.calls_s > 0) ready[slot] = calls_free = std::max(ready[slot], calls_free) + now.calls_s;
        if (now.combine_s > 0) ready[slot] = combine_free = std::max(ready[slot], combine_free) + now.combine_s;
        compute_free += now.delayed_s;
        computes += now.compute_s + now.delayed_s;
        exchanges += now.dispatch_s + now.combine_s;
      }
    }
  }
  // Dispatch and combine share ports: no two exchanges run at once at full speed, and the first and the last computation have none beside
  // them.
  const auto alone_s = [](const PieceTimes& piece) { return piece.compute_s + piece.calls_s; };
  const double ends =
      second.empty() || first.empty() || exchanges <= 0 ? 0 : alone_s(second.front().front()) + alone_s(first.back().back());
  const double end = std::max({ready[0], ready[1], compute_free, ends + exchanges});
  // While both go on they stretch each other.
  const double together = std::max(0.0, computes + exchanges - end);
  const double last = std::max(ready[0], ready[1]);
  const double late = second.empty() ? 0 : second.front().front().compute_s;
  return {end + together * pair.beta * (1 - 1 / pair.alpha), late, last - ready[0], last - ready[1]};
}

}  // namespace rehearse::sim
