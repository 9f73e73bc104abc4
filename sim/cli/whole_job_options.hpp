// What `run` and `replay` share: where the step time comes from, and how a whole job becomes a report.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/cli/command.hpp"
#include "sim/job/job.hpp"
#include "sim/wholejob/report.hpp"

namespace CLI {
class App;
}

namespace rehearse::cli {

void declare_step(CLI::App& app, std::string& step);

// What a time given by --step sets in the job, so that the resolved job has it.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> settings_of_step(const std::string& step);

// `step`: predicted, simulated or a time.
[[nodiscard]] sim::WholeJobPlan plan_with_step(const sim::Job& job, const std::string& step);

// A plan with its formula, not yet run.
[[nodiscard]] sim::WholeJobReport planned(const sim::WholeJobPlan& plan);

// The answer is no when a run was given up, or when the job does not fit into the memory of its GPUs; then it says so.
[[nodiscard]] Exit verdict(const sim::WholeJobReport& report);

}  // namespace rehearse::cli
