#include "sim/validate/verdict_summary.hpp"

#include <map>

namespace rehearse::sim {
namespace {

void add(VerdictSummary& summary, bool ran, bool said_to_fit) {
  ++(ran ? summary.ran : summary.ran_out);
  if (ran && !said_to_fit) ++summary.false_alarms;
  if (!ran && said_to_fit) ++summary.missed;
}

}  // namespace

std::vector<VerdictSummary> summarise_verdicts(const std::vector<Outcome>& outcomes) {
  std::map<std::string, VerdictSummary> groups;
  VerdictSummary all{.group = "all"};
  for (const Outcome& outcome : outcomes) {
    if (!outcome.ran || !outcome.said_to_fit) continue;
    add(groups.try_emplace(outcome.group, VerdictSummary{.group = outcome.group}).first->second, *outcome.ran, *outcome.said_to_fit);
    add(all, *outcome.ran, *outcome.said_to_fit);
  }
  std::vector<VerdictSummary> summaries;
  for (const auto& [name, summary] : groups) summaries.push_back(summary);
  if (!summaries.empty()) summaries.push_back(all);
  return summaries;
}

}  // namespace rehearse::sim
