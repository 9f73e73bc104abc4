// Where a served model's routers send tokens: the job's section `moe`.
#pragma once

#include <memory>

#include "config/node.hpp"
#include "sim/serving/serving_job.hpp"

namespace rehearse::sim {

// The section, refused with position where it does not fit the model. Nothing: tokens go to all experts alike.
[[nodiscard]] std::shared_ptr<const workloads::ExpertPlan> read_expert_routing(const config::Node& moe, const workloads::Model& model);
// Notes of pools whose ranks have unequal shares of the tokens.
void note_expert_routing(ServingJob& job);

}  // namespace rehearse::sim
