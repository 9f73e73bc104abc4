// Why a pool's plan cannot be.
#include <fmt/format.h>

#include "sim/serving/serving_job.hpp"
#include "workloads/serving/pass_operators.hpp"

namespace rehearse::sim {
namespace {

using Refused = std::optional<PlanRefusal>;

Refused refusal_of_experts(const workloads::InstancePlan& plan) {
  if (plan.ep > 1 && !plan.model.moe) return PlanRefusal{"ep is for models with experts"};
  if (plan.stage_ranks() % plan.ep != 0) return PlanRefusal{fmt::format("ep {} must divide tp*dp = {}", plan.ep, plan.stage_ranks())};
  if (plan.model.moe && plan.model.moe->experts % plan.ep != 0 && plan.redundant == 0) {
    return PlanRefusal{fmt::format("{} experts cannot be spread evenly over ep {}", plan.model.moe->experts, plan.ep)};
  }
  if (!plan.model.moe || plan.dp == 1 || plan.ep == plan.stage_ranks()) return std::nullopt;
  return PlanRefusal{
      fmt::format("with attention replicas (dp {}) the experts are spread over all tp*dp = {} ranks", plan.dp, plan.stage_ranks()),
      fmt::format("write ep: {}", plan.stage_ranks())};
}

// Stages that are unlike one another are priced by none.
Refused refusal_of_kinds(const workloads::InstancePlan& plan) {
  const workloads::Model& model = plan.model;
  if (plan.pp > 1 && (model.mixer || !model.pattern.empty()))
    return PlanRefusal{fmt::format("layers of several kinds stand on one stage, not on {} (pp)", plan.pp), "write pp: 1"};
  if (!model.mixer || (model.mixer->heads % plan.tp == 0 && model.mixer->groups % plan.tp == 0)) return std::nullopt;
  return PlanRefusal{fmt::format("heads and groups of the mixer ({} and {}) cannot be divided evenly over tp {}", model.mixer->heads,
                                 model.mixer->groups, plan.tp)};
}

}  // namespace

std::optional<PlanRefusal> plan_refusal(const ServingJob& job, const Pool& pool) {
  const workloads::InstancePlan& plan = pool.plan;
  if (plan.model.layers < plan.pp) return PlanRefusal{fmt::format("pp {} is more than the model's {} layers", plan.pp, plan.model.layers)};
  if (auto refusal = refusal_of_experts(plan)) return refusal;
  if (auto refusal = refusal_of_kinds(plan)) return refusal;
  const topology::ClusterSpec& cluster = job.parts[pool.part].cluster;
  if (plan.tp > cluster.domain_gpus() && plan.tp % cluster.domain_gpus() != 0)
    return PlanRefusal{fmt::format("tp {} is more than a domain of {} GPUs, and not whole ones", plan.tp, cluster.domain_gpus())};
  try {
    static_cast<void>(pass_operators(plan, kernel_fusions(*pool.software)));
  } catch (const config::InputError& error) {
    return PlanRefusal{error.message(), error.hint()};
  }
  if (!pool.draft) return std::nullopt;
  if (plan.pp > 1) return PlanRefusal{"speculative needs all layers on one stage"};
  Pool draft = pool;
  draft.plan = draft_plan(pool);
  draft.draft = nullptr;
  auto refusal = plan_refusal(job, draft);
  if (refusal) refusal->why = fmt::format("{}, which proposes tokens: {}", pool.draft->name, refusal->why);
  return refusal;
}

}  // namespace rehearse::sim
