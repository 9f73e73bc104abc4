// The reference solutions of tests/federated/data: rounds solved exactly by other means (primal and dual optimisation, brute force over
// cuts).
#pragma once

#include <string>
#include <vector>

#include "config/node.hpp"
#include "places.hpp"
#include "sim/federated/problem.hpp"

namespace rehearse::federated::reference {

inline const config::Node& file() {
  static const config::Node node = config::Node::load_file(std::string(REHEARSE_SOURCE_DIR) + "/tests/federated/data/reference.yaml");
  return node;
}

inline double number(const config::Node& node) { return node.as_number(-1e300, 1e300); }

inline std::vector<double> numbers(const config::Node& list) {
  std::vector<double> out;
  for (const config::Node& item : list.items()) out.push_back(number(item));
  return out;
}

inline std::vector<std::string> words(const config::Node& list) {
  std::vector<std::string> out;
  for (const config::Node& item : list.items()) out.push_back(item.as_string());
  return out;
}

struct Instance {
  std::string name;
  config::Node node, expected;
  Problem problem;
  std::vector<std::vector<std::string>> names;  // [device][option] of the cut

  [[nodiscard]] std::vector<std::string> named(const Cuts& cuts) const {
    std::vector<std::string> out;
    for (std::size_t n = 0; n < cuts.size(); ++n) out.push_back(names[n][cuts[n]]);
    return out;
  }
};

}  // namespace rehearse::federated::reference
