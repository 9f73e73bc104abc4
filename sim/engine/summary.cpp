#include "sim/engine/summary.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "sim/memory/over_time.hpp"
#include "workloads/collective.hpp"

namespace rehearse::sim {
namespace {

std::string_view group_name(workloads::GroupKind kind) {
  switch (kind) {
    case workloads::GroupKind::tp:
      return "tp";
    case workloads::GroupKind::cp:
      return "cp";
    case workloads::GroupKind::dp:
    case workloads::GroupKind::dp_cp:
      return "dp";
    case workloads::GroupKind::pp:
      return "pp";
    case workloads::GroupKind::embedding:
      return "embedding";
  }
  return "";
}

// Calls per simulated rank of each call of the graph, repeats counted.
std::map<std::pair<std::uint32_t, std::uint32_t>, long> count_calls(const workloads::StepGraph& graph) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, long> count;  // (call, rank)
  for (const workloads::Op& op : graph.ops) {
    if (op.kind != workloads::OpKind::compute) count[{op.item, op.rank}] += graph.calls[op.item].repeat;
  }
  return count;
}

}  // namespace

std::vector<CollectiveResult> collective_results(const workloads::StepGraph& graph, const Prices& prices) {
  using Key = std::tuple<std::string, std::string, double, double>;  // kind, group, bytes, seconds
  std::map<Key, CollectiveResult> rows;
  std::map<Key, std::map<std::uint32_t, long>> calls;
  for (const auto& [who, count] : count_calls(graph)) {
    const workloads::Call& call = graph.calls[who.first];
    const workloads::Group& group = graph.groups[call.group];
    const CallPrice& price = prices.calls[who.first];
    if (price.algorithm == "none") continue;
    const Key key{workloads::name_of(call.what.kind), group_name(group.kind), call.what.bytes, price.seconds()};
    CollectiveResult& row = rows[key];
    row = {std::get<0>(key),
           std::get<1>(key),
           price.algorithm,
           static_cast<int>(group.members.size()),
           call.what.bytes,
           0,
           price.seconds(),
           0,
           0};
    calls[key][who.second] += count;
  }
  std::vector<CollectiveResult> out;
  for (auto& [key, row] : rows) {
    for (const auto& [rank, count] : calls[key]) row.calls = std::max(row.calls, count);
    const auto kind =
        std::ranges::find_if(graph.calls, [&](const auto& c) { return workloads::name_of(c.what.kind) == row.name; })->what.kind;
    const workloads::Bandwidth bandwidth = workloads::nccl_bandwidth(kind, row.ranks, row.bytes, row.seconds);
    row.algbw_bytes_per_s = bandwidth.algbw_bytes_per_s;
    row.busbw_bytes_per_s = bandwidth.busbw_bytes_per_s;
    out.push_back(std::move(row));
  }
  return out;
}

void finish_for(const Job& job, StepResult& result) {
  const workloads::Batch& batch = job.workload.batch;
  const double tokens = static_cast<double>(batch.global) * batch.sequence;
  const double flops = batch.global * workloads::model_flops_per_sequence(job.workload.model, batch.sequence, false);
  finish(result, tokens, flops, job.gpus, job.gpu.peak_flops_per_s.at(job.workload.precision.compute));
  result.seed = job.simulation.seed;
  result.input_hash = input_hash(job);
}

StepResult summarise(const Job& job, const workloads::StepGraph& graph, const Prices& prices, const std::vector<Execution>& steps,
                     std::string method) {
  StepResult result;
  result.method = std::move(method);
  result.step_s = steps.back().step_s;
  for (const Execution& step : steps) result.step_seconds.push_back(step.step_s);
  const std::vector<PhaseTimes> phases = account(graph, steps.back());
  for (std::size_t i = 0; i < graph.ranks.size(); ++i) {
    result.ranks.push_back({graph.ranks[i].rank, graph.ranks[i].stage, graph.ranks[i].multiplicity, phases[i]});
  }
  result.collectives = collective_results(graph, prices);
  result.memory = memory_of(job, graph, steps);
  result.activities = static_cast<long>(graph.ops.size() * steps.size());
  finish_for(job, result);
  return result;
}

}  // namespace rehearse::sim
