#include "sim/engine/summary.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <span>
#include <tuple>

#include "sim/memory/framework.hpp"
#include "sim/memory/over_time.hpp"
#include "workloads/collective.hpp"
#include "workloads/expert_loads.hpp"
#include "workloads/rank_grid.hpp"

namespace rehearse::sim {
namespace {

struct Executed {
  long calls = 0;      // repeats counted
  double seconds = 0;  // all of them
  double alone_s = 0;  // all of them, each alone
  double shortest_s = never_s;
};

// Communications of the graph by call, and of each call by rank.
class ByCall {
 public:
  explicit ByCall(const workloads::StepGraph& graph) : first_(graph.calls.size() + 1) {
    const auto each = [&](const auto& visit) {
      for (workloads::OpId id = 0; id < graph.size(); ++id) {
        if (graph.op(id).kind != workloads::OpKind::compute) visit(id);
      }
    };
    each([&](workloads::OpId id) { ++first_[graph.op(id).item + 1]; });
    std::partial_sum(first_.begin(), first_.end(), first_.begin());
    ops_.resize(first_.back());
    std::vector<std::uint32_t> next(first_.begin(), first_.end() - 1);
    each([&](workloads::OpId id) { ops_[next[graph.op(id).item]++] = id; });
    for (std::uint32_t call = 0; call < graph.calls.size(); ++call)
      std::ranges::stable_sort(of(call), {}, [&](workloads::OpId id) { return graph.op(id).rank; });
  }
  [[nodiscard]] std::span<workloads::OpId> of(std::uint32_t call) {
    return std::span(ops_).subspan(first_[call], first_[call + 1] - first_[call]);
  }

 private:
  std::vector<std::uint32_t> first_;  // [call]
  std::vector<workloads::OpId> ops_;
};

struct Row {
  CollectiveResult result;
  std::vector<Executed> by_rank;
};

// One rank's operations of a call, which come first in `ops`.
Executed executed(const workloads::StepGraph& graph, const Execution& execution, std::span<const workloads::OpId>& ops) {
  Executed own;
  const workloads::Op first = graph.op(ops.front());
  for (; !ops.empty() && graph.op(ops.front()).rank == first.rank; ops = ops.subspan(1)) {
    own.calls += graph.calls[first.item].repeat;
    own.seconds += execution.end_s[ops.front()] - execution.start_s[ops.front()];
  }
  return own;
}

void finish_row(const std::vector<Executed>& by_rank, workloads::CollectiveKind kind, CollectiveResult& row) {
  Executed all;
  for (const Executed& executed : by_rank) {
    if (executed.calls == 0) continue;
    row.calls = std::max(row.calls, executed.calls);
    all.calls += executed.calls;
    all.seconds += executed.seconds;
    all.alone_s += executed.alone_s;
    all.shortest_s = std::min(all.shortest_s, executed.shortest_s);
  }
  row.seconds = all.shortest_s < row.longest_s ? all.alone_s / static_cast<double>(all.calls) : row.longest_s;
  row.in_step_s = all.seconds / static_cast<double>(all.calls);
  const workloads::Bandwidth bandwidth = workloads::nccl_bandwidth(kind, row.ranks, row.bytes, row.seconds);
  row.algbw_bytes_per_s = bandwidth.algbw_bytes_per_s;
  row.busbw_bytes_per_s = bandwidth.busbw_bytes_per_s;
}

}  // namespace

std::vector<CollectiveResult> collective_results(const workloads::StepGraph& graph, const Prices& prices, const Execution& execution) {
  using Key = std::tuple<workloads::CollectiveKind, std::string, double, double>;  // kind, group, bytes, seconds alone (0: they differ)
  std::map<Key, Row> rows;
  ByCall by_call(graph);
  for (std::uint32_t index = 0; index < graph.calls.size(); ++index) {
    const workloads::Call& call = graph.calls[index];
    const workloads::Group& group = graph.groups[call.group];
    const CallPrice& price = prices.calls[index];
    std::span<const workloads::OpId> ops = by_call.of(index);
    if (price.algorithm == "none" || ops.empty()) continue;
    const Key key{call.what.kind, std::string(workloads::name_of(group.kind)), call.what.bytes, call.what.exchange ? 0 : price.seconds()};
    auto& [row, by_rank] = rows[key];
    row.name = workloads::name_of(call.what.kind);
    row.group = std::get<1>(key);
    row.algorithm = price.algorithm;
    row.ranks = static_cast<int>(group.members.size());
    row.bytes = call.what.bytes;
    row.longest_s = std::max(row.longest_s, price.seconds());
    by_rank.resize(graph.ranks.size());
    while (!ops.empty()) {
      Executed& own = by_rank[graph.op(ops.front()).rank];
      const Executed more = executed(graph, execution, ops);
      own.calls += more.calls;
      own.seconds += more.seconds;
      own.alone_s += static_cast<double>(more.calls) * price.seconds();
      own.shortest_s = std::min(own.shortest_s, price.seconds());
    }
  }
  std::vector<CollectiveResult> out;
  for (auto& [key, row] : rows) {
    finish_row(row.by_rank, std::get<0>(key), row.result);
    out.push_back(std::move(row.result));
  }
  return out;
}

namespace {

// The global rank that stands for a place in the experts' group, in the stage that has the layer; MTP modules are in the last.
int rank_of(const Job& job, int place, int layer) {
  const workloads::Workload& workload = job.workload;
  const workloads::RankGrid grid(workload.parallel);
  const std::vector<std::vector<workloads::Chunk>> stages = workloads::split_layers(workload);
  int holder = 0;
  for (int stage = 0; stage < workload.parallel.pp; ++stage) {
    for (const workloads::Chunk& chunk : stages[static_cast<std::size_t>(stage)]) {
      const int end = chunk.first_layer + chunk.layers + (chunk.head ? workload.model.mtp : 0);
      if (layer >= chunk.first_layer && layer < end) holder = stage;
    }
  }
  return grid.group(workloads::GroupKind::ep, grid.rank({0, 0, 0, holder}))[static_cast<std::size_t>(place)];
}

ExpertLayerLoad layer_load(const Job& job, const workloads::ExpertLoads& loads, int step, int layer) {
  ExpertLayerLoad load{.step = step, .layer = layer};
  const int microbatches = job.workload.microbatches();
  int place = 0;
  for (int i = 0; i < (loads.even() ? 1 : microbatches); ++i) {
    const double dropped = loads.at(layer, i).dropped;
    load.dropped += dropped;
    load.routed += dropped;
    for (int r = 0; r < job.workload.parallel.ep; ++r) {
      const double tokens = loads.received(r, layer, i);
      load.routed += tokens;
      if (tokens <= load.tokens) continue;
      load.tokens = tokens;
      load.microbatch = i;
      place = r;
    }
  }
  load.rank = rank_of(job, place, layer);
  if (loads.even()) {
    load.routed *= microbatches;
    load.dropped *= microbatches;
  }
  return load;
}

ExpertLoadResult expert_load(const Job& job) {
  const workloads::Workload& workload = job.workload;
  ExpertLoadResult result;
  double routed = 0, dropped = 0;
  for (int step = 0; step < job.distinct_steps(); ++step) {
    const workloads::ExpertLoads loads(workload, step);
    for (int layer = 0; layer < workload.model.layers + workload.model.mtp; ++layer) {
      const bool has = workload.model.has_experts(layer);
      if (step == 0) result.chunks.push_back(has ? workload.experts.chunks_of(layer) : 0);
      if (!has) continue;
      const ExpertLayerLoad& load = result.layers.emplace_back(layer_load(job, loads, step, layer));
      routed += load.routed;
      dropped += load.dropped;
      if (load.tokens <= result.tokens) continue;
      result.step = step;
      result.layer = layer;
      result.rank = load.rank;
      result.microbatch = load.microbatch;
      result.tokens = load.tokens;
    }
  }
  if (result.layers.empty()) return result;
  result.mean_tokens = (routed - dropped) / static_cast<double>(result.layers.size()) / workload.microbatches() / workload.parallel.ep;
  result.dropped_share = dropped / routed;
  return result;
}

}  // namespace

void finish_for(const Job& job, StepResult& result) {
  const workloads::Batch& batch = job.workload.batch;
  const double tokens = static_cast<double>(batch.global) * batch.sequence;
  const double flops = batch.global * workloads::model_flops_per_sequence(job.workload.model, batch.sequence, false);
  finish(result, tokens, flops, job.system.gpus, job.system.gpu.peak_flops_per_s.at(job.workload.precision.compute));
  if (job.workload.model.moe) result.experts = expert_load(job);
  result.seed = job.system.simulation.seed;
  result.input_hash = input_hash(job);
}

StepResult summarise(const Job& job, const workloads::StepGraph& graph, const Prices& prices, const std::vector<Execution>& executions,
                     std::string method, int step) {
  StepResult result;
  result.method = std::move(method);
  result.step_s = executions.back().step_s;
  for (const Execution& run : executions) result.step_seconds.push_back(run.step_s);
  const std::vector<PhaseTimes> phases = account(graph, executions.back());
  for (std::size_t i = 0; i < graph.ranks.size(); ++i) {
    result.ranks.push_back({graph.ranks[i].rank, graph.ranks[i].stage, graph.ranks[i].multiplicity, phases[i]});
  }
  result.collectives = collective_results(graph, prices, executions.back());
  result.memory = memory_of(job, graph, executions, step);
  result.activities = static_cast<long>(graph.size() * executions.size());
  return result;
}

StepResult mean_step(const Job& job, std::vector<StepResult> steps) {
  StepResult result = std::move(steps.back());
  steps.pop_back();
  const double weight = 1 / static_cast<double>(steps.size() + 1);
  result.step_s *= weight;
  for (RankResult& rank : result.ranks) {
    for (double& seconds : rank.phases.seconds) seconds *= weight;
  }
  std::vector<double> step_seconds;
  for (const StepResult& step : steps) {
    step_seconds.insert(step_seconds.end(), step.step_seconds.begin(), step.step_seconds.end());
    result.step_s += weight * step.step_s;
    result.activities += step.activities;
    for (std::size_t i = 0; i < result.ranks.size(); ++i) {
      for (std::size_t p = 0; p < phase_count; ++p) result.ranks[i].phases.seconds[p] += weight * step.ranks[i].phases.seconds[p];
    }
    for (std::size_t i = 0; i < result.memory.ranks.size(); ++i) {
      RankMemory& highest = result.memory.ranks[i];
      const double host = std::max(highest.host_bytes, step.memory.ranks[i].host_bytes);
      if (step.memory.ranks[i].needed_bytes() >= highest.needed_bytes()) highest = step.memory.ranks[i];
      highest.host_bytes = host;
    }
  }
  result.step_seconds.insert(result.step_seconds.begin(), step_seconds.begin(), step_seconds.end());
  result.memory.host = fullest_host(job, result.memory.ranks);
  return result;
}

}  // namespace rehearse::sim
