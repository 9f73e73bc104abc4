#include "sim/engine/summary.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "sim/memory/over_time.hpp"
#include "workloads/collective.hpp"
#include "workloads/expert_loads.hpp"
#include "workloads/rank_grid.hpp"

namespace rehearse::sim {
namespace {

struct Executed {
  long calls = 0;      // repeats counted
  double seconds = 0;  // all of them
};

// Per call of the graph and simulated rank.
std::map<std::pair<std::uint32_t, std::uint32_t>, Executed> executed_calls(const workloads::StepGraph& graph, const Execution& execution) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, Executed> executed;  // (call, rank)
  for (workloads::OpId id = 0; id < graph.ops.size(); ++id) {
    const workloads::Op& op = graph.ops[id];
    if (op.kind == workloads::OpKind::compute) continue;
    Executed& e = executed[{op.item, op.rank}];
    e.calls += graph.calls[op.item].repeat;
    e.seconds += execution.end_s[id] - execution.start_s[id];
  }
  return executed;
}

}  // namespace

std::vector<CollectiveResult> collective_results(const workloads::StepGraph& graph, const Prices& prices, const Execution& execution) {
  using Key = std::tuple<workloads::CollectiveKind, std::string, double, double>;  // kind, group, bytes, seconds alone
  std::map<Key, CollectiveResult> rows;
  std::map<Key, std::map<std::uint32_t, Executed>> by_rank;
  for (const auto& [who, executed] : executed_calls(graph, execution)) {
    const workloads::Call& call = graph.calls[who.first];
    const workloads::Group& group = graph.groups[call.group];
    const CallPrice& price = prices.calls[who.first];
    if (price.algorithm == "none") continue;
    const Key key{call.what.kind, std::string(workloads::name_of(group.kind)), call.what.bytes, price.seconds()};
    CollectiveResult& row = rows[key];
    row.name = workloads::name_of(call.what.kind);
    row.group = std::get<1>(key);
    row.algorithm = price.algorithm;
    row.ranks = static_cast<int>(group.members.size());
    row.bytes = call.what.bytes;
    row.seconds = price.seconds();
    by_rank[key][who.second].calls += executed.calls;
    by_rank[key][who.second].seconds += executed.seconds;
  }
  std::vector<CollectiveResult> out;
  for (auto& [key, row] : rows) {
    Executed all;
    for (const auto& [rank, executed] : by_rank[key]) {
      row.calls = std::max(row.calls, executed.calls);
      all.calls += executed.calls;
      all.seconds += executed.seconds;
    }
    row.in_step_s = all.seconds / static_cast<double>(all.calls);
    const workloads::Bandwidth bandwidth = workloads::nccl_bandwidth(std::get<0>(key), row.ranks, row.bytes, row.seconds);
    row.algbw_bytes_per_s = bandwidth.algbw_bytes_per_s;
    row.busbw_bytes_per_s = bandwidth.busbw_bytes_per_s;
    out.push_back(std::move(row));
  }
  return out;
}

namespace {

ExpertLoadResult expert_load(const Job& job) {
  const workloads::Workload& workload = job.workload;
  const workloads::ExpertLoads loads(workload);
  const workloads::RankGrid grid(workload.parallel);
  const std::vector<int> ranks = grid.group(workloads::GroupKind::ep, 0);
  ExpertLoadResult result;
  double sum = 0, dropped = 0;
  long places = 0;
  for (int layer = 0; layer < workload.model.layers + workload.model.mtp; ++layer) {
    const bool has = workload.model.has_experts(layer);
    result.chunks.push_back(has ? workload.experts.chunks_of(layer) : 0);
    for (int i = 0; has && i < (loads.even() ? 1 : workload.microbatches()); ++i) {
      ++places;
      dropped += loads.at(layer, i).dropped;
      for (std::size_t r = 0; r < ranks.size(); ++r) {
        const double tokens = loads.received(static_cast<int>(r), layer, i);
        sum += tokens;
        if (tokens <= result.tokens) continue;
        result.tokens = tokens;
        result.rank = ranks[r];
        result.layer = layer;
        result.microbatch = i;
      }
    }
  }
  if (places == 0) return result;
  result.mean_tokens = sum / static_cast<double>(places) / static_cast<double>(ranks.size());
  result.dropped_share = dropped / (sum + dropped);
  // In the stage that has the layer; MTP modules are in the last.
  const std::vector<std::vector<workloads::Chunk>> stages = workloads::split_layers(workload);
  for (int stage = 0; stage < workload.parallel.pp; ++stage) {
    for (const workloads::Chunk& chunk : stages[static_cast<std::size_t>(stage)]) {
      const int end = chunk.first_layer + chunk.layers + (chunk.head ? workload.model.mtp : 0);
      if (result.layer < chunk.first_layer || result.layer >= end) continue;
      const int first = grid.rank({0, 0, 0, stage});
      result.rank = grid.group(workloads::GroupKind::ep, first)[static_cast<std::size_t>(grid.expert_rank(result.rank))];
    }
  }
  return result;
}

}  // namespace

void finish_for(const Job& job, StepResult& result) {
  const workloads::Batch& batch = job.workload.batch;
  const double tokens = static_cast<double>(batch.global) * batch.sequence;
  const double flops = batch.global * workloads::model_flops_per_sequence(job.workload.model, batch.sequence, false);
  finish(result, tokens, flops, job.gpus, job.gpu.peak_flops_per_s.at(job.workload.precision.compute));
  if (job.workload.model.moe) result.experts = expert_load(job);
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
  result.collectives = collective_results(graph, prices, steps.back());
  result.memory = memory_of(job, graph, steps);
  result.activities = static_cast<long>(graph.ops.size() * steps.size());
  finish_for(job, result);
  return result;
}

}  // namespace rehearse::sim
