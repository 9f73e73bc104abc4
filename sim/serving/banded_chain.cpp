#include "sim/serving/banded_chain.hpp"

#include <algorithm>
#include <utility>

#include "sim/serving/scaled_sums.hpp"

namespace rehearse::sim {

namespace {

constexpr double hardly_ever = 1e-30;  // a state is left downwards no less often, so that none of them ends the walk
constexpr double much = 1e200;

void scale(std::vector<double>& values, int number, double by) {
  for (int i = 0; i < number; ++i) values[static_cast<std::size_t>(i)] *= by;
}

}  // namespace

// A state's steps then lead below it alone, with those of what it met above.
SolvedChain::SolvedChain(BandedChain chain) : chain_(std::move(chain)), leaves_(static_cast<std::size_t>(chain_.states_), 1) {
  for (int last = chain_.states_ - 1; last > 0; --last) {
    const int low = lowest(last);
    double* out = &chain_.step(last, low);
    out[last - 1 - low] = std::max(out[last - 1 - low], hardly_ever);
    double leaves = 0;
    for (int to = low; to < last; ++to) leaves += out[to - low];
    for (int from = std::max(0, last - chain_.up_); from < last; ++from) {
      double& into = chain_.step(from, last);
      if (into <= 0) continue;
      into /= leaves;
      add_scaled(&chain_.step(from, low), out, into, last - low);
    }
    for (int to = low; to < last; ++to) out[to - low] /= leaves;
    leaves_[static_cast<std::size_t>(last)] = leaves;
  }
}

std::vector<double> SolvedChain::settled() const {
  std::vector<double> chances(static_cast<std::size_t>(chain_.states_), 0);
  double sum = chances[0] = 1;
  for (int state = 1; state < chain_.states_; ++state) {
    double& chance = chances[static_cast<std::size_t>(state)];
    for (int from = std::max(0, state - chain_.up_); from < state; ++from)
      chance += chances[static_cast<std::size_t>(from)] * chain_.step(from, state);
    sum += chance;
    if (sum < much) continue;
    scale(chances, state + 1, 1 / sum);
    sum = 1;
  }
  scale(chances, chain_.states_, 1 / sum);
  return chances;
}

std::vector<double> SolvedChain::ended(int ends, std::vector<double> costs) const {
  for (int last = chain_.states_ - 1; last >= ends; --last) {
    for (int from = std::max(0, last - chain_.up_); from < last; ++from)
      costs[static_cast<std::size_t>(from)] += chain_.step(from, last) * costs[static_cast<std::size_t>(last)];
    costs[static_cast<std::size_t>(last)] /= leaves_[static_cast<std::size_t>(last)];
  }
  const int columns = ends + 1;
  std::vector<double> out(static_cast<std::size_t>(chain_.states_) * static_cast<std::size_t>(columns), 0);
  const auto at = [&](int state) { return out.data() + static_cast<std::ptrdiff_t>(state) * columns; };
  for (int end = 0; end < ends; ++end) at(end)[end] = 1;
  for (int state = ends; state < chain_.states_; ++state) {
    for (int to = lowest(state); to < state; ++to) {
      for (int column = 0; column < columns; ++column) at(state)[column] += chain_.step(state, to) * at(to)[column];
    }
    at(state)[ends] += costs[static_cast<std::size_t>(state)];
  }
  return out;
}

}  // namespace rehearse::sim
