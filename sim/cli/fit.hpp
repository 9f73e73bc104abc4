// Whether a job fits into the memory of its GPUs, as an exit code and a message on standard error.
#pragma once

#include <initializer_list>

#include "sim/cli/command.hpp"
#include "sim/job/job.hpp"
#include "sim/memory/allocator_peaks.hpp"
#include "sim/result.hpp"

namespace rehearse::cli {

// A result of the formula that holds memory alone, before the allocator is asked. `compiled`: the job's, into layers.
[[nodiscard]] sim::StepResult memory_by_formula(const sim::Job& job, const workloads::Compiled& compiled);

// Says before a long simulation that its answer will be no.
void warn_of_shortage(const sim::StepResult& formula);

// answer_is_no, with a message for each result that does not fit.
[[nodiscard]] Exit fit_verdict(std::initializer_list<const sim::StepResult*> results);

// The same of what a job needs by formula.
[[nodiscard]] Exit fit_verdict(const sim::Job& job);

}  // namespace rehearse::cli
