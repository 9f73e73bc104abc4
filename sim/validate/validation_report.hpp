// A validation as sections of a report, which its reporters "validation-console", "validation-regret", "validation-json" and
// "validation-csv" write (docs/validation.md).
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "sim/validate/error_summary.hpp"
#include "sim/validate/verdict_summary.hpp"

namespace rehearse::sim {

using Json = nlohmann::ordered_json;

struct Validation {
  std::vector<Outcome> outcomes;
  std::vector<ErrorSummary> summaries;
  std::vector<VerdictSummary> verdicts;
};

// Section: no row per case on the console.
struct SummaryAlone {};

// Section: what is different from an earlier validation.
struct ValidationChanges {
  Json cases, groups;
};

[[nodiscard]] Json validation_json(const Validation& validation);

// Reads what --json printed earlier. Throws config::InputError when the file is none.
[[nodiscard]] Json read_stored_validation(const std::string& path);
// Cases that came, went, started or ceased to fail, or moved by more than `threshold_pct` percentage points; groups whose mean moved.
[[nodiscard]] ValidationChanges validation_changes(const Json& before, const Json& now, double threshold_pct);

}  // namespace rehearse::sim
