#include "sim/serving/banded_chain.hpp"

#include <algorithm>

namespace rehearse::sim {

namespace {

constexpr double hardly_ever = 1e-30;  // a state is left downwards no less often, so that none of them ends the walk
constexpr double much = 1e200;

void scale(std::vector<double>& values, int number, double by) {
  for (int i = 0; i < number; ++i) values[static_cast<std::size_t>(i)] *= by;
}

}  // namespace

std::vector<double> BandedChain::settled() && {
  for (int last = states_ - 1; last > 0; --last) {
    const int low = std::max(0, last - down_);
    double* out = &step(last, low);
    out[last - 1 - low] = std::max(out[last - 1 - low], hardly_ever);
    double leaves = 0;
    for (int to = low; to < last; ++to) leaves += out[to - low];
    for (int from = std::max(0, last - up_); from < last; ++from) {
      double& into = step(from, last);
      if (into <= 0) continue;
      into /= leaves;
      double* other = &step(from, low);
      for (int to = low; to < last; ++to) other[to - low] += into * out[to - low];
    }
  }
  std::vector<double> chances(static_cast<std::size_t>(states_), 0);
  double sum = chances[0] = 1;
  for (int state = 1; state < states_; ++state) {
    double& chance = chances[static_cast<std::size_t>(state)];
    for (int from = std::max(0, state - up_); from < state; ++from) chance += chances[static_cast<std::size_t>(from)] * step(from, state);
    sum += chance;
    if (sum < much) continue;
    scale(chances, state + 1, 1 / sum);
    sum = 1;
  }
  scale(chances, states_, 1 / sum);
  return chances;
}

}  // namespace rehearse::sim
