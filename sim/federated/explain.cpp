#include "sim/federated/explain.hpp"

#include "sim/federated/faults.hpp"

namespace rehearse::federated {
namespace {

struct Change {
  std::string key, value;
};

// Features of the declared keys, and what has more values than words can list.
std::vector<Change> changes() {
  std::vector<Change> all;
  const config::Shape shape = job_keys().shape();
  for (const config::Place& place : config::all_places(shape)) {
    if (!place.parameter->feature) continue;
    for (const std::string& word : config::words_of(place.parameter->shape)) all.push_back({place.path, word});
  }
  for (const char* cuts : {"tuned", "none"}) all.push_back({"federated.cuts", cuts});
  for (const char* shares : {"tuned", "equal", "proportional"}) all.push_back({"federated.shares", shares});
  return all;
}

std::string written(const Job& job, const std::string& key) {
  const auto value = job_keys().write(job.settings).find_path(key);
  return value ? config::one_line(*value) : "";
}

Effect effect_of(const std::string& name, const config::Node& document, const std::optional<std::uint64_t>& seed, const Change& change) {
  Effect effect{.key = change.key, .value = change.value};
  try {
    config::Node changed = document;
    changed.set(change.key, change.value);
    const Job job = read_job(name, changed, seed);
    const Plan plan = make_plan(job);
    effect.formula_s = round_by_formula(job, plan).round_s;
    effect.simulated_s = simulate_round(job, plan, conditions_of(job, {})).result.round_s;
  } catch (const config::InputError& error) {
    effect.refused = error.message();
  }
  return effect;
}

}  // namespace

Effects effects_of(const std::string& name, const config::Node& document, const std::optional<std::uint64_t>& seed,
                   const std::function<void(double)>& progress) {
  const Job job = read_job(name, document, seed);
  const std::vector<Change> all = changes();
  Effects effects;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (written(job, all[i].key) != all[i].value) effects.push_back(effect_of(name, document, seed, all[i]));
    progress(static_cast<double>(i + 1) / static_cast<double>(all.size()));
  }
  return effects;
}

}  // namespace rehearse::federated
