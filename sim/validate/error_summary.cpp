#include "sim/validate/error_summary.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

namespace rehearse::sim {
namespace {

struct Error {
  const Outcome* outcome;
  double relative;
};

// Groups in order of their names, and all of them last.
struct Key {
  bool everything;
  std::string group;
  Metric metric;
  int method;  // 0 predicted, 1 simulated
  int cases;   // 0 all, 1 stated, 2 inferred
  auto operator<=>(const Key&) const = default;
};

using ErrorsByKey = std::map<Key, std::vector<Error>>;

void add(ErrorsByKey& errors, const Outcome& outcome, int method, const Metrics& metrics) {
  const int kind = outcome.inferred.empty() ? 1 : 2;
  for (const auto& [metric, value] : metrics) {
    const Error error{&outcome, relative_error(value, outcome.measured.at(metric))};
    for (const int cases : {0, kind}) {
      errors[{false, outcome.group, metric, method, cases}].push_back(error);
      errors[{true, "all", metric, method, cases}].push_back(error);
    }
  }
}

std::vector<double> sorted_sizes(const std::vector<Error>& errors) {
  std::vector<double> sizes;
  for (const Error& error : errors) sizes.push_back(std::abs(error.relative));
  std::ranges::sort(sizes);
  return sizes;
}

ErrorSummary summary_of(const Key& key, const std::vector<Error>& errors) {
  constexpr std::array<const char*, 2> methods{"predicted", "simulated"};
  constexpr std::array<const char*, 3> parts{"all", "stated", "inferred"};
  ErrorSummary summary;
  summary.group = key.group;
  summary.cases = parts[static_cast<std::size_t>(key.cases)];
  summary.method = methods[static_cast<std::size_t>(key.method)];
  summary.metric = key.metric;
  summary.count = static_cast<int>(errors.size());
  const std::vector<double> sizes = sorted_sizes(errors);
  for (const Error& error : errors) {
    summary.mean_abs += std::abs(error.relative) / summary.count;
    summary.bias += error.relative / summary.count;
    if (summary.worst_id.empty() || std::abs(error.relative) > std::abs(summary.worst)) {
      summary.worst = error.relative;
      summary.worst_id = error.outcome->id;
    }
  }
  summary.median_abs = quantile(sizes, 0.5);
  summary.p90_abs = quantile(sizes, 0.9);
  return summary;
}

}  // namespace

double quantile(const std::vector<double>& sorted, double share) {
  const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(sorted.size())));
  return sorted.at(std::max<std::size_t>(rank, 1) - 1);
}

std::vector<ErrorSummary> summarise_errors(const std::vector<Outcome>& outcomes) {
  ErrorsByKey errors;
  for (const Outcome& outcome : outcomes) {
    if (!outcome.failed.empty()) continue;
    add(errors, outcome, 0, outcome.predicted);
    add(errors, outcome, 1, outcome.simulated);
  }
  std::vector<ErrorSummary> summaries;
  for (const auto& [key, list] : errors) summaries.push_back(summary_of(key, list));
  return summaries;
}

}  // namespace rehearse::sim
