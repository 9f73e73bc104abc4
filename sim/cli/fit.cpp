#include "sim/cli/fit.hpp"

#include <spdlog/spdlog.h>

#include "sim/memory/allocator_peaks.hpp"
#include "sim/memory/predicted.hpp"
#include "sim/report/memory_table.hpp"

namespace rehearse::cli {

namespace {

sim::StepResult memory_by_formula(const sim::Job& job) {
  sim::StepResult formula;
  formula.method = "analytic";
  formula.memory = sim::predicted_memory(job);
  sim::add_allocator(job, {&formula.memory});
  return formula;
}

}  // namespace

void warn_of_shortage(const sim::Job& job) {
  const sim::StepResult formula = memory_by_formula(job);
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
  const sim::StepResult formula = memory_by_formula(job);
  return fit_verdict({&formula});
}

}  // namespace rehearse::cli
