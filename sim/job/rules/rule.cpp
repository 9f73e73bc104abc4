#include "sim/job/rules/rule.hpp"

#include <algorithm>

#include "sim/job/checks.hpp"
#include "sim/job/refusal.hpp"

namespace rehearse::sim {

std::span<const Rule> all_rules() {
  static const std::vector<Rule> rules = [] {
    std::vector<Rule> all;
    for (const std::vector<Rule>& table :
         {support_rules(), layout_rules(), batch_rules(), lora_rules(), graph_rules(), experts_rules(), machine_rules()}) {
      all.insert(all.end(), table.begin(), table.end());
    }
    return all;
  }();
  return rules;
}

const Rule* broken_rule(const workloads::Workload& workload, const System& system) {
  const std::span<const Rule> rules = all_rules();
  const auto broken = std::ranges::find_if(rules, [&](const Rule& rule) { return !rule.holds(workload, system); });
  return broken == rules.end() ? nullptr : &*broken;
}

void check_rules(const config::Node& node, const workloads::Workload& workload, const System& system) {
  const Rule* rule = broken_rule(workload, system);
  if (rule == nullptr) return;
  const auto [message, hint] = rule->why(workload, system);
  const bool elsewhere = !rule->left_out.empty() && !node.find_path(rule->path);
  refuse(node, elsewhere ? rule->left_out : rule->path, message, hint);
}

}  // namespace rehearse::sim
