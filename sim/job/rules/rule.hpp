// What the keys of a job must be to one another, as tables: reading a job refuses by them, tuning leaves plans out by them.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/system.hpp"
#include "workloads/plan.hpp"

namespace rehearse::sim {

// What is wrong, and what would be right ("" where that is plain).
struct Refusal {
  std::string message, hint = {};
};

struct Rule {
  std::string_view path;  // of the key that is refused
  // No exception, and neither text nor memory where it holds. A rule may rely on all that stand before it.
  bool (*holds)(const workloads::Workload&, const System&);
  Refusal (*why)(const workloads::Workload&, const System&);  // where it does not hold
  std::string_view left_out = {};                             // where the job leaves `path` out: the key that is refused then
};

// All rules, in the order in which they are tested.
[[nodiscard]] std::span<const Rule> all_rules();

// The first that does not hold; nullptr where all do. What is left out of the job has been settled: dp, gpus, shard_group.
[[nodiscard]] const Rule* broken_rule(const workloads::Workload& workload, const System& system);

// The tables, in order.
[[nodiscard]] std::vector<Rule> support_rules();  // what the format can say and this version does not simulate
[[nodiscard]] std::vector<Rule> layout_rules();   // how the model is cut: layers over stages, widths over tp, the sequence over cp
[[nodiscard]] std::vector<Rule> batch_rules();    // the batch, the schedule, recomputation and what they ask of one another
[[nodiscard]] std::vector<Rule> lora_rules();     // what adapters ask of the model and its layout
[[nodiscard]] std::vector<Rule> graph_rules();    // what CUDA graphs hold
[[nodiscard]] std::vector<Rule> experts_rules();  // how experts are spread and dispatched to
[[nodiscard]] std::vector<Rule> machine_rules();  // precision and host memory

}  // namespace rehearse::sim
