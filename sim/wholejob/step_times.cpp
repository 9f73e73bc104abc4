#include "sim/wholejob/step_times.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "sim/analytic/predict.hpp"
#include "sim/engine/simulate.hpp"
#include "sim/memory/allocator_peaks.hpp"
#include "sim/memory/predicted.hpp"
#include "sim/memory/tune_chunks.hpp"
#include "sim/wholejob/slowness.hpp"

namespace rehearse::sim {
namespace {

// The job with that many replicas, when its batch goes over them.
std::optional<Job> with_replicas(const Job& job, int dp) {
  config::Node node = job.resolved.document();
  for (const char* key : {"training", "checkpoint", "recovery", "faults"}) node = node.without(key);
  config::Node simulation = node.at("simulation");
  for (const char* key : {"faults", "timeout"}) simulation = simulation.without(key);
  node.set_child("simulation", simulation);
  node.set("parallel.dp", std::to_string(dp));
  node.set("gpus", std::to_string(job.system.gpus / job.workload.parallel.dp * dp));
  node.set("optimizer.shard_group", std::to_string(dp * job.workload.parallel.cp));
  try {
    return tuned(read_job(node, job.name));
  } catch (const config::InputError&) {
    return std::nullopt;
  }
}

// Slow parts by the ranks of `smaller`, which may have fewer replicas than are left.
SlowParts slow_parts_of(const Job& job, const ClusterState& state, const Job& smaller) {
  workloads::Parallel left = job.workload.parallel;
  left.dp -= state.replicas_lost;
  return without_replicas(state.slow, left, {}, smaller.workload.parallel);
}

double slowest(const std::map<int, double>& parts) {
  double slowest = 1;
  for (const auto& [rank, slowdown] : parts) slowest = std::max(slowest, slowdown);
  return slowest;
}

// The collectives of a group go at the pace of their slowest member, and all groups meet in the step: every port counts as slow.
void slow_network(Job& job, const SlowParts& slow) {
  const double ports = slowest(slow.ports);
  topology::NetworkSpec& network = job.system.cluster.network;
  const double trunks = slow.trunk_factor(network.spines);
  job.system.cluster.nic.bandwidth_bytes_per_s /= ports;
  // Relative to slower ports the trunks are as wide as before; slower trunks are a higher oversubscription.
  network.trunk.bandwidth_bytes_per_s /= trunks;
  network.oversubscription *= std::max(1.0, trunks / ports);
}

double own_seconds(const StepResult& step, int stage) {
  double longest = 0;
  for (const RankResult& rank : step.ranks) {
    if (rank.stage != stage) continue;
    longest = std::max(longest, rank.phases[Phase::compute] + rank.phases[Phase::recompute] + rank.phases[Phase::optimizer]);
  }
  return longest;
}

// A stage that takes f times as long over its m micro-batches holds up all others by (f - 1) times its own work: in the steady phase of a
// pipeline of equal stages the step is (p - 1 + m f)(t_f + t_b). Of several slow stages the worst holds up the others.
double held_up_s(const Job& job, const StepResult& step, const SlowParts& slow) {
  const workloads::RankGrid grid(job.workload.parallel);
  double longest = 0;
  for (const auto& [rank, slowdown] : slow.gpus) {
    longest = std::max(longest, (slowdown - 1) * own_seconds(step, grid.coordinates(rank).pp));
  }
  return longest;
}

double formula_s(Job job, const SlowParts& slow) {
  slow_network(job, slow);
  const StepResult step = with_allocator(job, predict(job));
  return step.step_s + held_up_s(job, step, slow);
}

double simulation_s(Job job, const SlowParts& slow) {
  job.system.simulation.faults = {};
  job.system.simulation.faults.slow = slow;
  if (job.distinct_steps() == 1) job.system.simulation.steps = 1;  // otherwise their mean
  return with_allocator(job, simulate_in_child(job)).step_s;
}

// What the formula takes from slow parts: one rank of each stage, and one port.
SlowParts by_stage(const Job& job, const ClusterState& state) {
  workloads::Parallel left = job.workload.parallel;
  left.dp -= state.replicas_lost;
  if (left.dp < 1) return {};
  const workloads::RankGrid grid(left);
  SlowParts out = state.slow;
  out.gpus.clear();
  out.ports.clear();
  for (const auto& [rank, slowdown] : state.slow.gpus) {
    double& of_stage = out.gpus.try_emplace(grid.rank({.pp = grid.coordinates(rank).pp}), 1.0).first->second;
    of_stage = std::max(of_stage, slowdown);
  }
  if (!state.slow.ports.empty()) out.ports[0] = slowest(state.slow.ports);
  return out;
}

Job shrunken_or_refuse(const Job& job, const ClusterState& state) {
  ShrunkenJob smaller = shrunken(job, state.replicas_lost);
  if (!smaller.job) throw config::InputError(smaller.why_not);
  return std::move(*smaller.job);
}

}  // namespace

ShrunkenJob shrunken(const Job& job, int replicas_lost) {
  if (replicas_lost == 0) return {job, ""};
  const int left = job.workload.parallel.dp - replicas_lost;
  for (int dp = left; dp >= 1; --dp) {
    std::optional<Job> smaller = with_replicas(job, dp);
    if (!smaller) continue;
    // What ZeRO shards, fewer replicas hold more of. A job that never fitted is not stopped by that.
    if (predicted_memory(*smaller).fits() || !predicted_memory(job).fits()) return {std::move(smaller), ""};
    return {std::nullopt, fmt::format("{} replicas do not fit into the memory of their GPUs", dp)};
  }
  return {std::nullopt, fmt::format("no number of replicas up to {} can share the global batch", std::max(0, left))};
}

double predicted_step_s(const Job& job, const ClusterState& state) {
  const Job smaller = shrunken_or_refuse(job, state);
  return formula_s(smaller, slow_parts_of(job, state, smaller));
}

double simulated_step_s(const Job& job, const ClusterState& state) {
  const Job smaller = shrunken_or_refuse(job, state);
  return simulation_s(smaller, slow_parts_of(job, state, smaller));
}

StepTimes::StepTimes(const Job& job, double healthy_s, StepMethod method) : job_(job), healthy_s_(healthy_s), method_(method) {}

Ns StepTimes::at(const ClusterState& state) {
  if (state.healthy()) return healthy();
  return look_up(state).step;
}

std::string StepTimes::why_not(const ClusterState& state) {
  if (state.healthy()) return "";
  return look_up(state).why_not;
}

const StepTimes::Known& StepTimes::look_up(const ClusterState& state) {
  const auto met = met_.find(state);
  const ClusterState key = met != met_.end() ? met->second : met_[state] = representative(state);
  const auto found = known_.find(key);
  return found != known_.end() ? found->second : known_[key] = work_out(key);
}

const StepTimes::Smaller& StepTimes::smaller(int replicas_lost) {
  const auto [it, added] = smaller_.try_emplace(replicas_lost);
  Smaller& smaller = it->second;
  if (!added) return smaller;
  smaller.shrunken = shrunken(job_, replicas_lost);
  if (smaller.shrunken.job && method_ == StepMethod::simulation) smaller.symmetry.emplace(*smaller.shrunken.job);
  return smaller;
}

// States that give the same step. The formula asks how slow each stage is and how slow the slowest port; to the simulation those are the
// same that look the same from every rank.
ClusterState StepTimes::representative(const ClusterState& state) {
  if (method_ == StepMethod::formula) return {state.replicas_lost, by_stage(job_, state)};
  const Smaller& left = smaller(state.replicas_lost);
  if (!left.shrunken.job) return {state.replicas_lost, {}};
  const StateSymmetry::Key key = left.symmetry->key(slow_parts_of(job_, state, *left.shrunken.job));
  return key.empty() ? state : alike_.try_emplace({state.replicas_lost, key}, state).first->second;
}

StepTimes::Known StepTimes::work_out(const ClusterState& state) {
  const ShrunkenJob& smaller = this->smaller(state.replicas_lost).shrunken;
  if (!smaller.job) return {0, smaller.why_not};
  const auto step_s = [&](const Job& job, const SlowParts& slow) {
    return method_ == StepMethod::formula ? formula_s(job, slow) : simulation_s(job, slow);
  };
  if (reference_s_ == 0) reference_s_ = step_s(job_, {});
  const double ratio = step_s(*smaller.job, slow_parts_of(job_, state, *smaller.job)) / reference_s_;
  return {std::max(healthy(), to_ns(healthy_s_ * ratio)), ""};
}

}  // namespace rehearse::sim
