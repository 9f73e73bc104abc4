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

}  // namespace rehearse::sim
