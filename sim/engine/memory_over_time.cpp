#include "sim/engine/memory_over_time.hpp"

#include <algorithm>
#include <utility>

#include "sim/memory/host_memory.hpp"
#include "sim/memory/ranks_at_rest.hpp"

namespace rehearse::sim {
namespace {

using workloads::Allocation;
using workloads::OpId;
using workloads::RankAllocations;
using workloads::StepGraph;

double time_of(const Allocation& event, const StepGraph& graph, const Execution& run) {
  return event.at_end ? run.end_s[event.op] : run.start_s(graph, event.op);
}

// Visits them in order of time, with that; at one time as they stand.
template <class Visit>
void in_order(const std::vector<Allocation>& events, const StepGraph& graph, const Execution& run, Visit visit) {
  std::vector<std::pair<double, std::uint32_t>> order;
  order.reserve(events.size());
  for (const Allocation& event : events) order.emplace_back(time_of(event, graph, run), static_cast<std::uint32_t>(order.size()));
  std::ranges::sort(order);
  for (const auto& [at_s, index] : order) visit(events[index], at_s);
}

MemoryBytes& operator+=(MemoryBytes& held, const Allocation& event) {
  held[event.use] += event.bytes;
  return held;
}

RankMemory peak_of(const RankAtRest& resting, const StepGraph& graph, std::size_t rank, const RankAllocations& allocations,
                   const Execution& run) {
  const workloads::SimulatedRank& who = graph.ranks[rank];
  RankMemory memory = resting.rank();
  memory.rank = who.rank;
  memory.stage = who.stage;
  memory.ranks = who.multiplicity;
  MemoryBytes held = memory.at_peak;
  const Allocation* peak = nullptr;
  double most = memory.peak_bytes();
  in_order(allocations.events, graph, run, [&](const Allocation& event, double at_s) {
    held += event;
    if (held.total() <= most) return;
    memory.at_peak = held;
    most = held.total();
    memory.at_s = at_s;
    peak = &event;
  });
  if (peak != nullptr) {
    const workloads::Op op = graph.op(peak->op);
    memory.operation = graph.labels[op.label];
    memory.microbatch = op.microbatch;
  }
  double host = 0, most_on_host = 0;
  in_order(allocations.host, graph, run,
           [&](const Allocation& event, double) { most_on_host = std::max(most_on_host, host += event.bytes); });
  memory.host_bytes = allocations.held.host + most_on_host;
  resting.add_cache(memory);
  return memory;
}

void add_samples(std::vector<MemorySample>& samples, MemoryBytes& held, const std::vector<Allocation>& events, const StepGraph& graph,
                 const Execution& run, double offset_s) {
  in_order(events, graph, run, [&](const Allocation& event, double since_s) {
    held += event;
    const double at_s = offset_s + since_s;
    if (samples.back().at_s < at_s) samples.push_back({at_s, held});
    samples.back().held = held;
  });
}

}  // namespace

workloads::StepAllocations allocations_of(const PreparedStep& prepared) {
  const Job& job = prepared.job;
  return {job.workload, prepared.compiled, job.system.software.memory.habits, prepared.graph, prepared.step};
}

MemoryResult memory_of(const PreparedStep& prepared, const std::vector<Execution>& executions) {
  workloads::StepAllocations all = allocations_of(prepared);
  const System& system = prepared.job.system;
  const double framework = framework_bytes(system, prepared.job.workload);
  MemoryResult result;
  for (std::size_t rank = 0; rank < prepared.graph.ranks.size(); ++rank) {
    const RankAllocations own = all.of(rank);
    result.ranks.push_back(peak_of({system, framework, own.held}, prepared.graph, rank, own, executions.back()));
    result.ranks.back().step = prepared.step;
  }
  result.host = fullest_host(system.cluster, prepared.job.workload.parallel, result.ranks);
  return result;
}

void add_memory_over_time(const PreparedStep& prepared, const workloads::RankAllocations& rank, const std::vector<Execution>& executions,
                          const std::vector<double>& begins_s, std::vector<MemorySample>& samples) {
  const System& system = prepared.job.system;
  MemoryBytes held = RankAtRest(system, framework_bytes(system, prepared.job.workload), rank.held).always();
  if (samples.empty() || samples.back().at_s < begins_s.front()) samples.push_back({begins_s.front(), held});
  samples.back().held = held;
  for (std::size_t i = 0; i < executions.size(); ++i) add_samples(samples, held, rank.events, prepared.graph, executions[i], begins_s[i]);
}

}  // namespace rehearse::sim
