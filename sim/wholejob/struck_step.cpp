#include "sim/wholejob/struck_step.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "config/yaml_text.hpp"
#include "sim/faults/step_fault_text.hpp"
#include "sim/memory/tune_chunks.hpp"
#include "sim/wholejob/slowness.hpp"
#include "sim/wholejob/step_times.hpp"

namespace rehearse::sim {
namespace {

using config::Node;

// What the failure strikes of the job that is left, each as the beginning of an item.
std::vector<std::string> struck(const Job& job, const StepUnderWay& step, const Fault& fault, const Job& left) {
  const std::vector<std::string> whole = struck_by(fault, job.system.places());
  if (step.state.replicas_lost == 0 || whole.front() == "job") return whole;
  std::string list;
  for (const std::string& item : whole) list += fmt::format("{} at 0 s, ", item);
  const StepFaults faults =
      read_step_faults(Node::load_text("[" + list + "]", "failure"), {job.system.places(), job.system.cluster.network.spines, 1, nullptr});
  const std::set<int> lost = NodeMap(job.workload.parallel, job.system.places()).replicas(step.out);
  std::vector<std::string> items;
  for (const StepFailure& failure : faults.failures) {
    SlowParts marks;
    for (const int rank : failure.ranks) marks.gpus[rank] = 2;
    for (const auto& [rank, mark] : without_replicas(marks, job.workload.parallel, lost, left.workload.parallel).gpus)
      items.push_back(fmt::format("{} {}", failure.ports ? "nic" : "gpu", rank));
  }
  return items;
}

SlowParts slow_parts_left(const Job& job, const ClusterState& state, const Job& left) {
  workloads::Parallel before = job.workload.parallel;
  before.dp -= state.replicas_lost;
  return without_replicas(state.slow, before, {}, left.workload.parallel);
}

}  // namespace

Job struck_job(const WholeJobPlan& plan, const StepUnderWay& step, const Fault& fault, double at_s) {
  const Job& job = *plan.job;
  const ShrunkenJob left = shrunken(job, step.state.replicas_lost);
  if (!left.job) throw config::InputError(left.why_not);
  std::vector<std::string> items = items_of(slow_parts_left(job, step.state, *left.job));
  for (const std::string& item : struck(job, step, fault, *left.job))
    items.push_back(fmt::format("{} at {}", item, config::format_quantity(at_s, config::Dimension::time)));
  for (std::string& item : items) item = config::yaml_text(item);
  Node node = left.job->resolved.document();
  for (const char* key : {"training", "checkpoint", "recovery", "faults"}) node = node.without(key);
  node.set("simulation.steps", "1");
  node.set("simulation.timeout", config::format_quantity(job.system.simulation.timeout_s, config::Dimension::time));
  node.set("simulation.faults", fmt::format("[{}]", fmt::join(items, ", ")));
  return tuned(read_job(node, job.name));
}

const HistoryEntry& failure_in_step(const History& history, int number) {
  int seen = 0;
  for (const HistoryEntry& entry : history) {
    if (entry.event != "failure" || ++seen < number) continue;
    if (entry.step_under_way) return entry;
    throw config::InputError(fmt::format("failure {} strikes while training stands still: there is no step to show", number));
  }
  throw config::InputError(fmt::format("there is no failure {}: the history has {}", number, seen));
}

}  // namespace rehearse::sim
