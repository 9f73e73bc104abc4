#include "workloads/collectives/hamiltonian_cycles.hpp"

#include <algorithm>

namespace rehearse::workloads::collectives {
namespace {

// i, i+1, i-1, i+2, ... over all 2m points of a circle.
std::vector<int> zigzag(int i, int m) {
  std::vector<int> out;
  for (int step = 0; step < 2 * m; ++step) {
    const int offset = step % 2 == 1 ? (step + 1) / 2 : -step / 2;
    out.push_back((i + offset + 2 * m) % (2 * m));
  }
  return out;
}

}  // namespace

// A zigzag over all points but the last closes over it. When one more is left over, it goes between the two points in the middle of the
// zigzag, which lie opposite each other on the circle: another pair for every zigzag.
std::vector<std::vector<int>> hamiltonian_cycles(int n) {
  if (n < 3) return {n == 2 ? std::vector{0, 1} : std::vector{0}};
  const int m = (n - 1) / 2;
  std::vector<std::vector<int>> cycles;
  for (int i = 0; i < m; ++i) {
    std::vector<int> cycle = zigzag(i, m);
    if (n % 2 == 0) cycle.insert(cycle.begin() + m, n - 2);
    cycle.push_back(n - 1);
    cycles.push_back(cycle);
    std::reverse(cycle.begin(), cycle.end());
    cycles.push_back(cycle);
  }
  return cycles;
}

}  // namespace rehearse::workloads::collectives
