// A validation on the console, as JSON, as CSV, and against an earlier one (docs/validation.md).
#pragma once

#include <nlohmann/json.hpp>
#include <ostream>
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

void print_cases(const Validation& validation, bool colour, std::ostream& out);
void print_summaries(const Validation& validation, bool colour, std::ostream& out);
void write_validation_csv(const Validation& validation, std::ostream& out);
[[nodiscard]] Json validation_json(const Validation& validation);

// Reads what --json printed earlier. Throws config::InputError when the file is none.
[[nodiscard]] Json read_stored_validation(const std::string& path);
// Cases that came, went, started or ceased to fail, or moved by more than `threshold_pct` percentage points; groups whose mean moved.
[[nodiscard]] Json validation_changes(const Json& before, const Json& now, double threshold_pct);
void print_changes(const Json& changes, bool colour, std::ostream& out);

}  // namespace rehearse::sim
