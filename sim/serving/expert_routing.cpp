#include "sim/serving/expert_routing.hpp"

#include <fmt/format.h>

#include "sim/job/workload_keys.hpp"
#include "workloads/routing.hpp"
#include "workloads/serving/expert_ranks.hpp"

namespace rehearse::sim {
namespace {

using config::Node;
using workloads::ExpertPlan;

// A layer has one popularity, which holds for all passes: that of step 0, micro-batch 0.
void check_counted(const Node& routing, const ExpertPlan& plan, const workloads::Model& model) {
  for (const workloads::RoutedTokens& row : plan.counts) {
    const auto outside = [&](const char* what, int value, int most) {
      if (value >= most) routing.fail(fmt::format("the counts name {} {}; there are {}, from 0", what, value, most));
    };
    outside("layer", row.layer, model.layers);
    outside("expert", row.expert, model.moe->experts);
    outside("step", row.step, 1);
    outside("micro-batch", row.microbatch, 1);
    if (!model.has_experts(row.layer)) routing.fail(fmt::format("the counts name layer {}, which has no experts", row.layer));
  }
  for (int layer = 0; layer < model.layers; ++layer) {
    if (!model.has_experts(layer)) continue;
    try {
      static_cast<void>(workloads::RoutingRegistry::get("counts").shares(plan, model.moe->experts, {.step = 0, .layer = layer}));
    } catch (const config::InputError& error) {
      routing.fail(error.message());
    }
  }
}

}  // namespace

std::shared_ptr<const ExpertPlan> read_expert_routing(const Node& moe, const workloads::Model& model) {
  if (!model.moe) moe.fail_at_key("moe is for models with experts");
  for (const char* key : {"dispatcher", "redundant", "overlap"}) {
    if (const auto here = moe.find(key))
      here->fail_at_key(fmt::format("{} belongs to a pool", key), fmt::format("write it in the moe of serving.pools.NAME"));
  }
  ExpertPlan plan = mapping(served_experts_keys()).read(moe);
  const auto routing = moe.find("routing");
  if (!routing) return nullptr;
  if (plan.senders != workloads::Senders::alike) {
    (routing->find("senders") ? routing->at("senders") : *routing)
        .fail("the ranks of an instance that serves send alike: chance is part of a pass's price", "leave senders out");
  }
  if (plan.routing == "counts") check_counted(*routing, plan, model);
  if (workloads::RoutingRegistry::get(plan.routing).even()) return nullptr;
  return std::make_shared<const ExpertPlan>(std::move(plan));
}

void note_expert_routing(ServingJob& job) {
  for (const Pool& pool : job.pools) {
    if (!pool.plan.routing || pool.plan.ep == 1) continue;
    job.notes.push_back(
        fmt::format("pool {}: the busiest of {} ranks gets {:.2f} times the mean rank's tokens of experts (mean of the layers)", pool.name,
                    pool.plan.ep, workloads::ExpertRanks(pool.plan).imbalance()));
  }
}

}  // namespace rehearse::sim
