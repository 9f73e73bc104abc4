// Whether a job fits into the memory of its GPUs, as an exit code and a message on standard error.
#pragma once

#include <initializer_list>

#include "sim/cli/command.hpp"
#include "sim/job/job.hpp"
#include "sim/memory/allocator_peaks.hpp"
#include "sim/result.hpp"

namespace rehearse::cli {

// Says before a long simulation that its answer will be no. The job's trainings may be used again.
void warn_of_shortage(const sim::Job& job, sim::AllocatorTrainings& trainings);

// answer_is_no, with a message for each result that does not fit.
[[nodiscard]] Exit fit_verdict(std::initializer_list<const sim::StepResult*> results);

// The same of what a job needs by formula.
[[nodiscard]] Exit fit_verdict(const sim::Job& job);

}  // namespace rehearse::cli
