// Random jobs with a small space to search, and the answer by brute force: every point a document of its own, read and predicted.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "sim/analytic/predict.hpp"
#include "sim/memory/ranks_at_rest.hpp"
#include "sim/memory/tune_chunks.hpp"
#include "sim/tune/search.hpp"
#include "sim/wholejob/plan.hpp"
#include "tests/engine/random_jobs.hpp"

namespace rehearse::tests {

// A document with a section `tune`, read.
struct Tuned {
  config::Node given;
  sim::TuneSpec spec;
  sim::Space space;
  explicit Tuned(const std::string& text)
      : given(config::Node::load_text(text, "space.yaml")), spec(read(given)), space(given, "space", spec, {}) {}

 private:
  static sim::TuneSpec read(const config::Node& given) {
    sim::TuneSpec spec;
    if (const auto section = given.find("tune")) sim::tune_keys().read(*section, spec);
    return spec;
  }
};

// dp follows, as reading has it.
inline std::string without_dp(std::string job) {
  constexpr std::string_view key = ", dp: ", digits = "0123456789";
  for (std::size_t at = job.find(key); at != std::string::npos; at = job.find(key, at + 1)) {
    const std::size_t end = job.find_first_not_of(digits, at + key.size());
    if (end > at + key.size()) job.erase(at, end - at);  // a degree, not a class of contention
  }
  return job;
}

class RandomSpaces {
 public:
  explicit RandomSpaces(unsigned seed) : jobs_(seed), random_(seed + 1) {}

  // A job and its space, at most so many points.
  std::string next(int goals, int most_points) {
    std::string text = without_dp(jobs_.next() + "}\n");
    const std::string wanted = some_goals(goals);
    const bool by_time = (" " + wanted + ",").find(" time,") == std::string::npos && random_() % 3 == 0;
    if (text.find("\ntraining:") == std::string::npos)
      text += std::string("training: {") + (by_time ? "time: 2 days" : "steps: 100000") +
              "}\ncheckpoint: {save_time: 20 s, load_time: 30 s}\nfaults: {all: {source: poisson, rate: 0.5 /day}}\n";
    text += "tune:\n  memory: " + pick({"1", "1", "0.05", "0.03", "0.02", "0.01"});
    text += "\n  fits: " + pick({"surely", "likely"});
    text += "\n  price: {gpu_hour: 2}\n  keep: " + pick({"1", "3", "10"});
    text += "\n  goal: [" + wanted + "]\n  space:\n";
    std::vector<std::pair<std::string, std::vector<std::string>>> axes{
        {"parallel.tp", {"[1, 2, 4]", "divisors", "[2, 1]"}},
        {"parallel.pp", {"[1, 2, 4]", "powers-of-two", "{from: 1, to: 4}"}},
        {"parallel.vpp", {"[1, 2]", "[1, 2, 4]"}},
        {"parallel.cp", {"[1, 2]"}},
        {"parallel.sp", {"both"}},
        {"batch.micro", {"[1, 2]", "[1, 2, 4]", "{from: 1, to: 4, times: 2}"}},
        {"schedule", {"all", "[1f1b, gpipe]", "[zb-h1, 1f1b, interleaved-1f1b]"}},
        {"recompute", {"all", "[none, full, {full_layers: 1}]", "[none, {modules: [core_attn]}]"}},
        {"optimizer.sharding", {"[none, zero1]", "all"}},
        {"overlap.tp", {"both"}},
        {"overlap.pp", {"both"}},
        {"overlap.ep", {"both"}},
        {"optimizer.device", {"both"}},
        {"offload.activations", {"both"}},
        {"overlap.dp_gradients", {"both"}},
        {"overlap.dp_parameters", {"both"}},
        {"attention", {"all"}},
        {"cuda_graphs", {"both"}},
        {"gpus", {"[4, 8]", "[8, 16, 4]"}},
    };
    std::shuffle(axes.begin(), axes.end(), random_);
    std::string space;
    double points = 1;
    for (const auto& [key, ways] : axes) {
      const std::string line = "    " + key + ": " + ways[random_() % ways.size()] + "\n";
      const double values = 3;
      if (points * values > most_points) break;
      points *= values;
      space += line;
    }
    return text + space;
  }

 private:
  std::string pick(std::initializer_list<const char*> from) { return *(from.begin() + random_() % from.size()); }
  std::string some_goals(int count) {
    std::vector<std::string> all{"step", "tokens_per_s", "tokens_per_s_per_gpu", "mfu", "time", "cost", "ettr", "memory"};
    std::shuffle(all.begin(), all.end(), random_);
    std::string text = all[0];
    for (int i = 1; i < count; ++i) text += ", " + all[static_cast<std::size_t>(i)];
    return text;
  }

  RandomJobs jobs_;
  std::mt19937 random_;
};

// What predict() and the formula of the whole job say about a point; nothing where the document is refused.
struct Answer {
  sim::Candidate candidate;
  bool fits = false;
};

inline double goal_of(sim::Goal goal, const sim::Job& job, const sim::StepResult& step) {
  const auto input = [&] { return sim::plan_whole_job(job, step.step_s, "predicted").formula_input; };
  const auto whole = [&] { return sim::formula(input()); };
  switch (goal) {
    case sim::Goal::step:
      return step.step_s;
    case sim::Goal::tokens_per_s:
      return -step.tokens_per_s;
    case sim::Goal::tokens_per_s_per_gpu:
      return -step.tokens_per_s_per_gpu;
    case sim::Goal::mfu:
      return -step.mfu;
    case sim::Goal::time:
      return whole().total_s();
    case sim::Goal::cost:
      if (job.whole.training.time_s > 0)
        return job.system.gpus * whole().total_s() / 3600 * 2 / (input().steps * job.workload.batch.global * job.workload.batch.sequence);
      return job.system.gpus * whole().total_s() / 3600 * 2;
    case sim::Goal::ettr:
      return -whole().ettr;
    case sim::Goal::memory:
      return step.memory.fullest()->needed_bytes();
  }
  return 0;
}

inline std::optional<Answer> answer_at(const Tuned& tuned, std::uint64_t point) {
  try {
    const sim::Job job = sim::tuned(tuned.space.job_of(point, 1));
    const sim::StepResult step = sim::predict(job);
    Answer answer;
    answer.candidate.point = point;
    answer.candidate.step_s = step.step_s;
    answer.candidate.peak_bytes = step.memory.fullest()->peak_bytes();
    answer.candidate.needed_bytes = step.memory.fullest()->needed_bytes();
    answer.candidate.layout = sim::layout_of(job.workload, job.system.gpus);
    const double margin = tuned.spec.fits == sim::Fits::surely ? sim::MeasuredErrors().most_need(job).factor : 1;
    const double most = tuned.spec.memory * sim::usable_bytes(job.system.gpu) / margin;
    answer.candidate.lacks_bytes = std::max(0.0, step.memory.fullest()->needed_bytes() - most);
    answer.fits = step.memory.fits() && answer.candidate.lacks_bytes == 0;
    for (std::size_t i = 0; i < tuned.spec.goals.size(); ++i) answer.candidate.goals[i] = goal_of(tuned.spec.goals[i], job, step);
    return answer;
  } catch (const config::InputError&) {
    return std::nullopt;
  }
}

}  // namespace rehearse::tests
