// Results written for people and for programs. One reporter, one .cpp with its registration; nothing else in the program prints results.
#pragma once

#include <iosfwd>
#include <span>
#include <string_view>
#include <vector>

#include "config/registry.hpp"
#include "sim/compare/compare.hpp"
#include "sim/compare/explain.hpp"
#include "sim/job/job.hpp"
#include "sim/report/report.hpp"
#include "sim/result.hpp"

namespace rehearse::sim {

[[nodiscard]] JobSummary summary_of(const Job& job);

// The section of a command about one step: what each method says of it.
struct StepResults {
  std::vector<const StepResult*> by_method;  // not owned
};
using FeatureEffects = std::vector<FeatureEffect>;

// Empty where the report is not about a step.
[[nodiscard]] inline std::span<const StepResult* const> steps_of(const Report& report) {
  const auto* steps = report.find<StepResults>();
  return steps == nullptr ? std::span<const StepResult* const>() : steps->by_method;
}

class Reporter {
 public:
  static constexpr std::string_view kind = "reporter";
  virtual ~Reporter() = default;

  // Name of the file in the -o folder; "" when it is never written there.
  [[nodiscard]] virtual std::string_view file_name() const = 0;
  // Whether the report holds what this reporter shows.
  [[nodiscard]] virtual bool applies(const Report& report) const = 0;
  // The same report gives the same bytes. Errors of the stream are the caller's to check.
  virtual void write(const Report& report, std::ostream& out) const = 0;
};

using ReporterRegistry = config::Registry<Reporter>;

// Those of the report's family.
[[nodiscard]] inline const Reporter& console_reporter(const Report& report) { return ReporterRegistry::get(report.family + "console"); }
[[nodiscard]] inline const Reporter& json_reporter(const Report& report) { return ReporterRegistry::get(report.family + "json"); }

}  // namespace rehearse::sim
