#include "sim/serving/banded_chain.hpp"

#include <algorithm>

#include "sim/serving/scaled_sums.hpp"

namespace rehearse::sim {

namespace {

constexpr double hardly_ever = 1e-30;  // a state is left downwards no less often, so that none of them ends the walk
constexpr double much = 1e200;

void scale(std::vector<double>& values, int number, double by) {
  for (int i = 0; i < number; ++i) values[static_cast<std::size_t>(i)] *= by;
}

}  // namespace

// A state's steps then lead below it alone, with its costs and those of what it met above.
void BandedChain::eliminate(int down_to, std::vector<double>& costs) {
  for (int last = states_ - 1; last >= down_to; --last) {
    const int low = std::max(0, last - down_);
    double* out = &step(last, low);
    out[last - 1 - low] = std::max(out[last - 1 - low], hardly_ever);
    double leaves = 0;
    for (int to = low; to < last; ++to) leaves += out[to - low];
    for (int from = std::max(0, last - up_); from < last; ++from) {
      double& into = step(from, last);
      if (into <= 0) continue;
      into /= leaves;
      add_scaled(&step(from, low), out, into, last - low);
      costs[static_cast<std::size_t>(from)] += into * costs[static_cast<std::size_t>(last)];
    }
    for (int to = low; to < last; ++to) out[to - low] /= leaves;
    costs[static_cast<std::size_t>(last)] /= leaves;
  }
}

std::vector<double> BandedChain::settled() && {
  std::vector<double> free(static_cast<std::size_t>(states_), 0);
  eliminate(1, free);
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

std::vector<double> BandedChain::ended(int ends, const std::vector<double>& costs) && {
  std::vector<double> along = costs;
  eliminate(ends, along);
  const int columns = ends + 1;
  std::vector<double> out(static_cast<std::size_t>(states_) * static_cast<std::size_t>(columns), 0);
  const auto at = [&](int state) { return out.data() + static_cast<std::ptrdiff_t>(state) * columns; };
  for (int end = 0; end < ends; ++end) at(end)[end] = 1;
  for (int state = ends; state < states_; ++state) {
    for (int to = std::max(0, state - down_); to < state; ++to) {
      for (int column = 0; column < columns; ++column) at(state)[column] += step(state, to) * at(to)[column];
    }
    at(state)[ends] += along[static_cast<std::size_t>(state)];
  }
  return out;
}

}  // namespace rehearse::sim
