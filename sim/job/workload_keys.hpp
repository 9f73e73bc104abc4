// The keys of a job that say how its model is trained.
#pragma once

#include "config/keys.hpp"
#include "workloads/plan.hpp"

namespace rehearse::sim {

[[nodiscard]] const config::Keys<workloads::Parallel>& parallel_keys();  // dp stays 0 where it is left out
[[nodiscard]] const config::Keys<workloads::Batch>& batch_keys();
[[nodiscard]] const config::Keys<workloads::Lora>& lora_keys();
[[nodiscard]] const config::Keys<workloads::Optimizer>& optimizer_keys();
[[nodiscard]] const config::Keys<workloads::Overlap>& overlap_keys();
[[nodiscard]] const config::Keys<workloads::Workload>& offload_keys();
[[nodiscard]] const config::Keys<workloads::ExpertPlan>& experts_keys();         // files are relative to the job's
[[nodiscard]] const config::Keys<workloads::ExpertPlan>& served_experts_keys();  // of them, what a job that serves has

// A word for the precision as a whole, or a mapping.
[[nodiscard]] config::Form<workloads::Precision> precision_form();
// Each once, and one at least.
[[nodiscard]] config::Form<std::vector<workloads::GraphScope>> graph_scopes_form();
// A word, {full_layers: N} or {modules: [...]}.
[[nodiscard]] config::Form<workloads::Recompute> recompute_form();

}  // namespace rehearse::sim
