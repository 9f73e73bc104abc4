#include "sim/cli/fit.hpp"

#include <spdlog/spdlog.h>

#include "sim/memory/predicted.hpp"
#include "sim/report/memory_table.hpp"

namespace rehearse::cli {

sim::StepResult memory_by_formula(const sim::Job& job, const workloads::Compiled& compiled) {
  sim::StepResult formula;
  formula.method = "analytic";
  formula.memory = sim::predicted_memory(job, compiled);
  return formula;
}

void warn_of_shortage(const sim::StepResult& formula) {
  if (!formula.memory.fits()) spdlog::warn("{}", sim::shortage(formula));
}

Exit fit_verdict(std::initializer_list<const sim::StepResult*> results) {
  Exit exit = Exit::fine;
  for (const sim::StepResult* result : results) {
    if (result->memory.fits()) continue;
    spdlog::error("{}", sim::shortage(*result));
    exit = Exit::answer_is_no;
  }
  return exit;
}

Exit fit_verdict(const sim::Job& job) {
  const workloads::Compiled compiled = workloads::compile(job.workload);
  sim::AllocatorTrainings trainings(job, compiled);
  sim::StepResult formula = memory_by_formula(job, compiled);
  trainings.add_to(formula.memory);
  return fit_verdict({&formula});
}

}  // namespace rehearse::cli
