#include "tests/fuzz/targets/answers.hpp"

#include <cmath>

#include "sim/analytic/predict.hpp"
#include "sim/memory/tune_chunks.hpp"
#include "tests/fuzz/target.hpp"

namespace rehearse::fuzz {
namespace {

bool countable(double value) { return std::isfinite(value) && value >= 0; }

void check_memory(const sim::RankMemory& rank) {
  for (const double bytes : rank.at_peak.bytes) {
    if (!countable(bytes)) throw Nonsense(fmt::format("{} bytes of memory", bytes));
  }
}

void check_step(const sim::StepResult& result) {
  if (!countable(result.step_s) || result.step_s <= 0) throw Nonsense(fmt::format("a step of {} s", result.step_s));
  if (!countable(result.mfu)) throw Nonsense(fmt::format("an MFU of {}", result.mfu));
  for (const double seconds : result.mean.seconds) {
    if (!std::isfinite(seconds)) throw Nonsense(fmt::format("a phase of {} s", seconds));
  }
  for (const sim::RankMemory& rank : result.memory.ranks) check_memory(rank);
}

sim::Job read_again(const sim::Job& job) {
  try {
    return sim::read_job(config::Node::load_text(job.resolved.to_yaml(), "resolved.yaml"), job.name);
  } catch (const config::InputError& refused) {
    throw Nonsense(fmt::format("the resolved job is refused: {}", refused.what()));
  }
}

}  // namespace

void check_answers(const sim::Job& job) {
  check_step(sim::predict(sim::tuned(job)));
  const sim::Job again = read_again(job);
  if (again.resolved.to_yaml() != job.resolved.to_yaml()) throw Nonsense("the resolved job resolves to another one");
}

}  // namespace rehearse::fuzz
