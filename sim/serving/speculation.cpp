#include "sim/serving/speculation.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace rehearse::sim {

double Speculation::tokens_a_pass() const {
  double sum = 1, taken = 1;
  for (int k = 0; k < tokens; ++k) sum += taken *= acceptance;
  return sum;
}

// E[n] = 1 + sum over what a pass brings of its chance times E[n - what it brings]; with c_k = a^k the chance of k + 1 tokens or more, that
// is the sum over k of c_k (1 - a) E[n - k - 1], the last one without (1 - a). Between whole numbers of tokens on a line; far behind the
// beginning tokens_a_pass() a pass.
double Speculation::mean_passes(double count) const {
  if (tokens == 0 || count <= 0) return std::max(0.0, count);
  const int far = 64 * (tokens + 1);  // the beginning is forgotten
  const int whole = static_cast<int>(std::min(std::ceil(count), static_cast<double>(far)));
  std::vector<double> passes(static_cast<std::size_t>(whole) + 1);
  for (int n = 1; n <= whole; ++n) {
    double sum = 1, taken = 1;
    for (int k = 0; k <= tokens; ++k) {
      const double chance = k < tokens ? taken * (1 - acceptance) : taken;
      if (n > k + 1) sum += chance * passes[static_cast<std::size_t>(n - k - 1)];
      taken *= acceptance;
    }
    passes[static_cast<std::size_t>(n)] = sum;
  }
  if (count > far) return passes.back() + (count - far) / tokens_a_pass();
  const double above = whole - count;
  return passes.back() - above * (passes.back() - passes[passes.size() - 2]);
}

std::int64_t Speculation::draw_passes(std::int64_t count, config::Random random) const {
  if (tokens == 0) return count;
  std::int64_t passes = 0;
  for (std::int64_t there = 0; there < count; ++passes) {
    ++there;
    for (int k = 0; k < tokens && random.uniform() < acceptance; ++k) ++there;
  }
  return passes;
}

}  // namespace rehearse::sim
