#include "sim/api/rehearse.hpp"

#include <sstream>

#include "sim/analytic/predict.hpp"
#include "sim/api/prediction.hpp"
#include "sim/engine/simulate.hpp"
#include "sim/job/job.hpp"
#include "sim/kind/job_kind.hpp"
#include "sim/memory/allocator_peaks.hpp"
#include "sim/memory/tune_chunks.hpp"
#include "sim/report/reporter.hpp"

namespace rehearse {
namespace {

// What the library throws of its own, as the one error of this header.
template <class Work>
auto told(const Work& work) {
  try {
    return work();
  } catch (const config::InputError& error) {
    throw Error(error.what(), {error.where().file, error.where().line, error.where().column}, error.message(), error.hint());
  }
}

// As the program has it, with what PyTorch's allocator keeps and takes.
Step step_of(const sim::Job& job, sim::StepResult result) {
  result = sim::with_allocator(job, std::move(result));
  Step step{.seconds = result.step_s,
            .tokens_per_second = result.tokens_per_s,
            .mfu = result.mfu,
            .fits = result.memory.fits(),
            .peak_bytes = 0,
            .phases = {}};
  if (const sim::RankMemory* fullest = result.memory.fullest()) step.peak_bytes = fullest->peak_bytes();
  for (std::size_t i = 0; i < sim::phase_count; ++i) {
    step.phases.push_back({std::string(key_of(static_cast<sim::Phase>(i))), result.mean.seconds[i]});
  }
  return step;
}

sim::Report predicted(const sim::JobRequest& request) {
  const std::string kind = sim::kind_of(request);
  if (kind.empty()) return sim::prediction(sim::tuned(sim::load_job(request)));
  return sim::kind_with_answer(kind, "predict").answer("predict", sim::kind_request(request)).report;
}

std::string json_of_prediction(const sim::JobRequest& request) {
  return told([&] {
    const sim::Report report = predicted(request);
    std::ostringstream json;
    json_reporter(report).write(report, json);
    return std::move(json).str();
  });
}

}  // namespace

Job Job::load(const std::string& path_or_name, const Settings& settings) {
  return told([&] { return Job(std::make_shared<const sim::Job>(sim::tuned(sim::load_job({path_or_name, settings, {}})))); });
}

Job Job::with(const Settings& settings) const {
  return told([&] { return Job(std::make_shared<const sim::Job>(sim::tuned(sim::with_settings(*job_, settings)))); });
}

const std::string& Job::name() const { return job_->name; }
int Job::gpus() const { return job_->system.gpus; }
std::string Job::resolved_yaml() const { return job_->resolved.to_yaml(); }

Step predict(const Job& job) {
  return told([&] { return step_of(job.implementation(), sim::predict(job.implementation())); });
}

Step simulate(const Job& job) {
  return told([&] {
    const sim::StepFaults& faults = job.implementation().system.simulation.faults;
    if (!faults.failures.empty()) throw config::InputError("a step in which something fails has no end", "leave out simulation.faults");
    return step_of(job.implementation(), sim::simulate_in_child(job.implementation()));
  });
}

std::string predict_json(const std::string& path_or_name, const Settings& settings) {
  return json_of_prediction({.path = path_or_name, .sets = settings, .seed = {}});
}

std::string predict_text_json(const std::string& job, const Settings& settings) {
  return json_of_prediction({.path = "stdin", .sets = settings, .seed = {}, .faults = {}, .text = job});
}

}  // namespace rehearse
