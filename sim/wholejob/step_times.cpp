#include "sim/wholejob/step_times.hpp"

#include <algorithm>
#include <optional>

#include "sim/analytic/predict.hpp"

namespace rehearse::sim {
namespace {

// A node that is missing takes its replicas along; the others share the global batch. The loader's own rules say which numbers of
// replicas can: the largest such number is taken.
std::optional<Job> with_replicas(const Job& job, int replicas) {
  for (int dp = replicas; dp >= 1; --dp) {
    config::Node node = job.resolved;
    for (const char* key : {"training", "checkpoint", "recovery", "faults"}) node = node.without(key);
    const int gpus = job.gpus / job.workload.parallel.dp * dp;
    node.set("parallel.dp", std::to_string(dp));
    node.set("gpus", std::to_string(gpus));
    node.set("optimizer.shard_group", std::to_string(dp * job.workload.parallel.cp));
    try {
      return read_job(node, job.name);
    } catch (const config::InputError&) {
      continue;  // this batch does not go over that many replicas
    }
  }
  return std::nullopt;
}

// The collectives of a group go at the pace of their slowest member, and all groups meet in the step: every port counts as slow.
void slow_network(Job& job, const ClusterState& state) {
  job.cluster.nic.bandwidth_bytes_per_s /= state.ports;
  // Relative to slower ports the trunks are as wide as before; slower trunks are a higher oversubscription.
  topology::NetworkSpec& network = job.cluster.network;
  network.trunk.bandwidth_bytes_per_s /= state.trunks;
  network.oversubscription *= std::max(1.0, state.trunks / state.ports);
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
double held_up_s(const StepResult& step, const ClusterState& state) {
  double longest = 0;
  for (const auto& [stage, slowdown] : state.slow_stages) longest = std::max(longest, (slowdown - 1) * own_seconds(step, stage));
  return longest;
}

std::optional<double> try_predict(const Job& job, const ClusterState& state) {
  auto smaller = state.replicas_lost > 0 ? with_replicas(job, job.workload.parallel.dp - state.replicas_lost) : std::optional(job);
  if (!smaller) return std::nullopt;
  slow_network(*smaller, state);
  const StepResult step = predict(*smaller);
  return step.step_s + held_up_s(step, state);
}

}  // namespace

double predicted_step_s(const Job& job, const ClusterState& state) {
  const std::optional<double> seconds = try_predict(job, state);
  if (!seconds) throw config::InputError("no number of replicas that are left can share the global batch");
  return *seconds;
}

StepTimes::StepTimes(const Job& job, double healthy_s)
    : job_(job), healthy_s_(healthy_s), predicted_healthy_s_(predicted_step_s(job, {})) {}

Ns StepTimes::at(const ClusterState& state) {
  if (state.healthy()) return healthy();
  const auto found = known_.find(state);
  if (found != known_.end()) return found->second;
  return known_[state] = work_out(state);
}

Ns StepTimes::work_out(const ClusterState& state) const {
  const std::optional<double> seconds = try_predict(job_, state);
  return seconds ? std::max(healthy(), to_ns(healthy_s_ * *seconds / predicted_healthy_s_)) : 0;
}

}  // namespace rehearse::sim
