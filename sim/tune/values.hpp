// The values that a space gives to a key: one, a list, divisors, powers-of-two, {from: 1, to: 16}, both, all.
#pragma once

#include <string>
#include <vector>

#include "sim/job/job.hpp"

namespace rehearse::sim {

struct SpaceValue {
  std::string text;   // as --set takes it
  config::Node node;  // to be read, and where complaints point
};

// `open`: the job, for its model and batch; `most_gpus`: of all sizes of the cluster that are searched. Refuses what makes no list of
// values of this key, one that is empty, and values given twice. The values themselves are read, and checked, by the key.
[[nodiscard]] std::vector<SpaceValue> values_of(const std::string& key, const config::Node& given, const Job& open, int most_gpus);

// KEY=V1,V2,... of a command line; commas in brackets belong to the value, and a value alone may be a word such as divisors.
struct GivenValues {
  std::string key;
  config::Node values;
};
[[nodiscard]] GivenValues parse_values(const std::string& option, const std::string& text);

}  // namespace rehearse::sim
