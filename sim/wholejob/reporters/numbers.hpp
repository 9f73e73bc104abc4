// The quantities that reports give of whole jobs: the same for the console, JSON and CSV.
#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "sim/wholejob/report.hpp"

namespace rehearse::sim {

struct Quantity {
  std::string_view key, name;
  enum class Unit { share, seconds, count, tokens_per_s } unit = Unit::count;
  std::function<std::optional<double>(const RunResult&)> of_run;  // none where a run has no such thing
  std::optional<double> by_formula;
  // Of a quantity that is so much per so many: over all runs their sums count, also of a run that had none.
  struct Ratio {
    double (*amount)(const RunResult&) = nullptr;
    double (*count)(const RunResult&) = nullptr;
  };
  std::optional<Ratio> ratio = std::nullopt;
};

[[nodiscard]] std::vector<Quantity> quantities_of(const WholeJobReport& report);

// Over the runs that have it, if any (mean and interval of a ratio: over all); none of the quantities is below 0, a share is 1 at most.
[[nodiscard]] std::optional<Statistics> statistics_of(const Quantity& quantity, const std::vector<RunResult>& runs);

// "12 d 03:04:05".
[[nodiscard]] std::string clock_text(Ns at);

}  // namespace rehearse::sim
