#include "sim/analytic/overlap.hpp"

namespace rehearse::sim {

double overlapped_s(double compute_s, double communication_s, const ContentionPair& pair) {
  const double stretched_compute = pair.alpha * compute_s;
  const double stretched_communication = pair.beta * communication_s;
  if (stretched_compute >= stretched_communication) return compute_s + stretched_communication * (1 - 1 / pair.alpha);
  return communication_s + stretched_compute * (1 - 1 / pair.beta);
}

ContentionPair contention_of(const Gpu& gpu, const char* communication) {
  const auto it = gpu.contention.find(communication);
  return it == gpu.contention.end() ? ContentionPair{} : it->second;
}

void ChunkTimes::raise_to(const ChunkTimes& other) {
  chunks = other.chunks;
  dispatch_s = std::max(dispatch_s, other.dispatch_s);
  recompute_s = std::max(recompute_s, other.recompute_s);
  work_s = std::max(work_s, other.work_s);
  combine_s = std::max(combine_s, other.combine_s);
}

double chunked_s(const ChunkTimes& times, const ContentionPair& pair) {
  const double experts = times.recompute_s + times.work_s;
  double total = times.dispatch_s + times.combine_s;
  for (int i = 0; i < times.chunks; ++i) {
    const double beside = (i + 1 < times.chunks ? times.dispatch_s : 0) + (i > 0 ? times.combine_s : 0);
    total += overlapped_s(experts, beside, pair);
  }
  return total;
}

}  // namespace rehearse::sim
