#include "sim/compare/explain.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <optional>
#include <thread>
#include <tuple>

#include "config/data_dir.hpp"
#include "config/input_error.hpp"
#include "config/threads.hpp"
#include "sim/analytic/evaluator.hpp"
#include "sim/analytic/predict.hpp"
#include "sim/job/job_keys.hpp"
#include "sim/job/parts.hpp"
#include "sim/job/plan_keys.hpp"
#include "sim/memory/tune_chunks.hpp"
#include "workloads/names.hpp"
#include "workloads/schedule.hpp"
#include "workloads/stage_program.hpp"

namespace rehearse::sim {
namespace {

constexpr double nothing = 1e-9;  // of a step or a peak: rounding of another order of sums

struct Choice {
  std::string key;
  std::vector<std::string> values;  // the first: without the feature
};

// The features of the job format that are a choice on their own.
const std::vector<Choice>& choices() {
  static const std::vector<Choice> all = [] {
    std::vector<Choice> found;
    const config::Shape shape = job_shape();
    for (const config::Place& place : all_places(shape)) {
      if (place.parameter->feature) found.push_back({place.path, words_of(place.parameter->shape)});
    }
    return found;
  }();
  return all;
}

// A key's value; of a feature that a resolved job writes only when it is on, what it is without.
std::string now_at(const Job& job, const std::string& key) {
  std::string now = job.resolved.value(key);
  if (!now.empty()) return now;
  const auto choice = std::ranges::find(choices(), key, &Choice::key);
  return choice != choices().end() ? choice->values.front() : now;
}

// A feature changed, with what goes with it alone: layers are named of activations that are offloaded, weight gradients are delayed in
// overlapped pairs, and weights lie on the host in ZeRO-3's shards beside their optimizer.
Settings switched(const Job& job, const std::string& key, const std::string& value) {
  Settings settings{{key, value}};
  if (key == "overlap.ep" && value == "false" && job.workload.overlap.delay_wgrad) settings.emplace_back("overlap.delay_wgrad", "false");
  if (key == "offload.activations" && value == "false") {
    if (job.workload.offload_layers >= 0) settings.emplace_back("offload.layers", "all");
    if (job.workload.offload_share < 1) settings.emplace_back("offload.share", "1");
  }
  const bool brings_down = (key == "optimizer.device" && value == "gpu") || (key == "optimizer.sharding" && value != "zero3");
  if (brings_down && job.workload.offload_weights) settings.emplace_back("offload.weights", "false");
  return settings;
}

constexpr const char* shard_group = "optimizer.shard_group";

std::string shown(const Settings& settings) {
  std::string text = settings.front().second;
  for (std::size_t i = 1; i < settings.size(); ++i) {
    if (settings[i].first != shard_group) text += fmt::format(", {} {}", settings[i].first, settings[i].second);
  }
  return text;
}

// Mirrored schedules have twice as many ranks with the same parameters: who shards over all of them still does.
void keep_sharding_over_all(const workloads::Workload& now, const std::string& schedule, Settings& settings) {
  workloads::Workload other = now;
  other.schedule = schedule;
  const int before = workloads::replica_sync(now).ranks, after = workloads::replica_sync(other).ranks;
  if (now.optimizer.shard_group == before && after != before) settings.emplace_back(shard_group, std::to_string(after));
}

// Every schedule with the numbers of chunks per GPU that suit it.
void add_schedules(const Job& job, std::vector<Settings>& all) {
  const workloads::Workload& now = job.workload;
  if (now.parallel.pp == 1) return;
  for (const std::string& name : workloads::ScheduleRegistry::names()) {
    for (const int chunks : {1, 2, 4, 8}) {
      if (name == now.schedule && chunks == now.parallel.vpp) continue;
      workloads::Workload other = now;
      other.schedule = name;
      other.parallel.vpp = chunks;
      if (!workloads::ScheduleRegistry::get(name).refusal(workloads::pipeline_shape(other)).empty()) continue;
      Settings settings{{"schedule", name}, {"parallel.vpp", std::to_string(chunks)}};
      if (chunks == now.parallel.vpp) settings.pop_back();
      keep_sharding_over_all(now, name, settings);
      all.push_back(std::move(settings));
    }
  }
}

// Each module of the model alone; core attention alone is `selective`.
void add_modules(const Job& job, std::vector<Settings>& all) {
  using enum workloads::RecomputeModule;
  const std::string now = job.resolved.value("recompute");
  for (const workloads::RecomputeModule module : {layernorm, mla_up_proj, mlp, mlp_act, moe_act, shared_experts}) {
    const std::string alone = fmt::format("{{modules: [{}]}}", workloads::recompute_modules.of(module));
    if (workloads::has_module(job.workload.model, module) && alone != now) all.push_back({{"recompute", alone}});
  }
}

// Packed documents against one document a sequence.
void add_whole_sequences(const Job& job, std::vector<Settings>& all) {
  const workloads::Batch& batch = job.workload.batch;
  if (batch.context() < batch.sequence) all.push_back({{"batch.document_tokens", std::to_string(batch.sequence)}});
}

bool trains(const std::string& software) {
  const auto said = ready_made(software_part, software).node.find("trains");
  return !said || said->as_bool();
}

// What the stack is worth: every other one, those that only serve too.
void add_stacks(const Job& job, std::vector<Settings>& all) {
  for (const std::string& name : config::data_names(software_part.folder)) {
    if (name != job.system.software.name) all.push_back({{"software", name}});
  }
}

std::vector<Settings> alternatives(const Job& job) {
  std::vector<Settings> all;
  for (const Choice& choice : choices()) {
    const std::string now = now_at(job, choice.key);
    for (const std::string& value : choice.values) {
      if (value != now) all.push_back(switched(job, choice.key, value));
    }
  }
  add_modules(job, all);
  add_whole_sequences(job, all);
  add_schedules(job, all);
  add_stacks(job, all);
  return all;
}

double peak_of(const StepResult& result) {
  const RankMemory* fullest = result.memory.fullest();
  return fullest != nullptr ? fullest->needed_bytes() : 0;
}

void note(const StepResult& result, FeatureSwitch& feature) {
  feature.step_s = result.step_s;
  feature.peak_bytes = peak_of(result);
  feature.fits = result.memory.fits();
}

void note(const Evaluation& evaluation, FeatureSwitch& feature) {
  feature.step_s = evaluation.step_s;
  feature.peak_bytes = evaluation.needed_bytes;
  feature.fits = evaluation.fits;
}

// The settings that leave out one feature of the job each: the first value of its choice, and plain 1F1B.
std::vector<Settings> without_each(const Job& job) {
  std::vector<Settings> all;
  for (const Choice& choice : choices()) {
    const std::string now = now_at(job, choice.key);
    if (now != choice.values.front()) all.push_back(switched(job, choice.key, choice.values.front()));
  }
  add_whole_sequences(job, all);
  if (job.workload.schedule != "1f1b") {
    all.push_back({{"schedule", "1f1b"}, {"parallel.vpp", "1"}});
    keep_sharding_over_all(job.workload, "1f1b", all.back());
  }
  return all;
}

FeatureSwitch described(const Job& job, Settings settings) {
  FeatureSwitch feature;
  feature.feature = settings.front().first;
  feature.from = feature.feature == software_part.what ? job.system.software.name : now_at(job, feature.feature);
  if (feature.feature == "schedule" && settings.size() > 1 && settings[1].first == "parallel.vpp")
    feature.from += fmt::format(", parallel.vpp {}", job.workload.parallel.vpp);
  feature.to = shown(settings);
  feature.settings = std::move(settings);
  return feature;
}

// Every alternative evaluated, or refused, on several threads; stacks that only serve are none.
std::vector<FeatureSwitch> tried(const Job& job) {
  std::vector<std::optional<FeatureSwitch>> features;
  for (Settings& settings : alternatives(job)) features.emplace_back(described(job, std::move(settings)));
  std::atomic<std::size_t> next = 0;
  config::on_threads(std::thread::hardware_concurrency(), [&] {
    const auto orders = Evaluator::orders();
    Evaluator evaluate(job, orders);
    for (std::size_t i = next++; i < features.size(); i = next++) {
      FeatureSwitch& feature = *features[i];
      try {
        if (feature.feature == software_part.what && !trains(feature.to)) {
          features[i].reset();
          continue;
        }
        const Job other = tuned(with_settings(job, feature.settings));
        const bool same_system = plan_key(feature.feature) != nullptr;
        note(same_system ? evaluate.without_phases(other.workload) : Evaluator(other, orders).without_phases(other.workload), feature);
      } catch (const config::InputError& error) {
        feature.refusal = error.message();
      }
    }
  });
  std::vector<FeatureSwitch> possible;
  for (std::optional<FeatureSwitch>& feature : features) {
    if (feature) possible.push_back(std::move(*feature));
  }
  return possible;
}

bool same(double a, double b) { return std::abs(a - b) <= nothing * std::max(a, b); }

}  // namespace

Explanation explain(const Job& job) {
  Explanation explanation{.now = predict(job), .switches = {}, .idle = {}, .refused = {}};
  FeatureSwitch now;
  note(explanation.now, now);
  for (FeatureSwitch& feature : tried(job)) {
    const bool changes = !same(feature.step_s, now.step_s) || !same(feature.peak_bytes, now.peak_bytes);
    std::vector<FeatureSwitch>& list = !feature.possible() ? explanation.refused : changes ? explanation.switches : explanation.idle;
    list.push_back(std::move(feature));
  }
  std::ranges::stable_sort(explanation.switches, {}, [](const FeatureSwitch& s) { return std::tuple(!s.fits, s.step_s, s.peak_bytes); });
  return explanation;
}

std::vector<FeatureEffect> effects_of_features(const Job& job, const Progress& progress) {
  std::vector<FeatureEffect> effects;
  const StepResult analytic = predict(job);
  const StepResult simulated = simulate_in_child(job);
  const std::vector<Settings> variants = without_each(job);
  for (std::size_t i = 0; i < variants.size(); ++i) {
    if (progress) progress(static_cast<double>(i + 1) / static_cast<double>(variants.size() + 1));
    std::optional<Job> other;
    try {
      other = tuned(with_settings(job, variants[i]));
    } catch (const config::InputError&) {
      continue;  // others depend on it
    }
    const StepResult predicted = predict(*other);
    const StepResult executed = simulate_in_child(*other);
    const std::string& key = variants[i].front().first;
    effects.push_back({key, now_at(job, key), shown(variants[i]), analytic.step_s - predicted.step_s, simulated.step_s - executed.step_s,
                       peak_of(analytic) - peak_of(predicted), peak_of(simulated) - peak_of(executed)});
  }
  return effects;
}

}  // namespace rehearse::sim
