#include "sim/federated/problem.hpp"

namespace rehearse::federated {

std::vector<Option> chosen(const Problem& problem, const Cuts& cuts) {
  std::vector<Option> out;
  out.reserve(cuts.size());
  for (std::size_t n = 0; n < cuts.size(); ++n) out.push_back(problem.of(n)[cuts[n]]);
  return out;
}

}  // namespace rehearse::federated
