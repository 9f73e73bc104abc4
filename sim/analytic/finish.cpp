#include "sim/analytic/finish.hpp"

#include <algorithm>
#include <numeric>

#include "sim/memory/host_memory.hpp"
#include "workloads/expert_loads.hpp"
#include "workloads/rank_grid.hpp"

namespace rehearse::sim {
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
  const double flops = batch.global * workloads::step_flops_per_sequence(job.workload, false);
  finish(result, tokens, flops, job.system.gpus, job.system.gpu.peak_flops_per_s.at(job.workload.precision.compute));
  if (job.workload.model.moe) result.experts = expert_load(job);
  result.seed = job.system.simulation.seed;
  result.input_hash = input_hash(job);
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
  result.memory.host = fullest_host(job.system.cluster, job.workload.parallel, result.memory.ranks);
  return result;
}

}  // namespace rehearse::sim
