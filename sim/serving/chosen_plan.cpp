#include "sim/serving/chosen_plan.hpp"

#include <fmt/format.h>

#include "sim/serving/pool_keys.hpp"

namespace rehearse::sim {

std::string chosen_plan(const ServingJob& job, const ServingTuning& tuning) {
  config::Node document = config::Node::load_text(job.resolved_yaml, job.name);
  const TunedDeployment& chosen = tuning.best[*tuning.chosen];
  const config::Node written = document.at("serving").at("pools");
  config::Node pools;
  for (const Pool& pool : chosen.pools) {
    config::Node node = written.at(pool.like).without("kv_tokens").without("parallel").without("longest_prompt");
    node.set("role", role_names().of(pool.role));
    if (!job.parts[pool.part].name.empty()) node.set("part", job.parts[pool.part].name);
    node.set("instances", std::to_string(pool.instances));
    node.set("parallel", fmt::format("{{tp: {}, pp: {}, dp: {}, ep: {}}}", pool.plan.tp, pool.plan.pp, pool.plan.dp, pool.plan.ep));
    if (job.tune && !job.tune->precisions.empty()) {
      const workloads::ServingPrecision& precision = pool.plan.precision;
      const std::string attention = precision.attention ? fmt::format(", attention: {}", name_of(*precision.attention)) : "";
      const std::string state = job.model.mixer ? fmt::format(", state: {}", name_of(precision.state)) : "";
      node.set("precision", fmt::format("{{compute: {}, weights: {}, kv: {}{}{}}}", name_of(pool.wanted), name_of(precision.weights),
                                        name_of(precision.kv), state, attention));
    }
    node.set("limits", fmt::format("{{sequences: {}, tokens: {}}}", pool.habits.sequences, pool.habits.tokens));
    if (pool.longest_prompt > 0) node.set("longest_prompt", std::to_string(pool.longest_prompt));
    pools.set_child(pool.name, node);
  }
  config::Node serving = document.at("serving");
  for (const Pool& pool : chosen.pools) {
    if (pool.longest_prompt > 0) serving.set(pool.role == Role::decode ? "router.decode" : "router.prefill", divides_by_length);
  }
  if (chosen.pools.front().role == Role::both) serving = serving.without("transfer");
  serving.set_child("pools", pools);
  document.set_child("serving", serving);
  if (is_of_rates(tuning.goals.front()) && job.load.arrivals.kind != workloads::Arrivals::trace) {
    for (const char* form : {"poisson", "gamma", "constant"}) {
      const std::string key = fmt::format("serving.load.arrivals.{}", form);
      if (document.find_path(key)) document.set(key, fmt::format("{} /s", tuning.carried_per_s(chosen)));
    }
  }
  return document.to_yaml();
}

}  // namespace rehearse::sim
