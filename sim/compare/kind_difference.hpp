// Two jobs of a kind other than training, or their results, side by side.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/compare/difference.hpp"

namespace rehearse::sim {

// One side: the job as it was resolved, and result.json of it.
struct KindSide {
  std::string name, kind;  // "serving"
  config::Node job;
  nlohmann::ordered_json result;
};

// A number of both results, by its place: "ttft.mean_s", "pools.decode.busy".
struct MetricPair {
  std::string name;
  double a = 0, b = 0;
};

struct KindDifference {
  std::string a, b;    // names
  std::string method;  // by which both were found: "simulated"; "" where results are by none
  std::vector<KeyDifference> keys;
  std::vector<MetricPair> metrics;  // all that both have; lists of more than a few (devices, rounds) are not among them
};

// Throws config::InputError where the two are of different kinds, or have no method in common.
[[nodiscard]] KindDifference difference_of(const KindSide& a, const KindSide& b);

}  // namespace rehearse::sim
