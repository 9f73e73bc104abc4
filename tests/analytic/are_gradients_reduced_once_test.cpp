// optimizer.no_sync: ZeRO-2 and 3 keep gradients whole until the last micro-batch and reduce them once; a stack that broadcasts_weights:
// the owners of whole tensors send their new weights one after another.
#include <gtest/gtest.h>

#include "../engine/jobs.hpp"
#include "sim/analytic/predict.hpp"
#include "sim/engine/simulate.hpp"
#include "sim/memory/predicted.hpp"

namespace rehearse::tests {
namespace {

constexpr int ranks = 8, microbatches = 6;
constexpr double port_bytes_per_s = 0.8 * 300e9, hop_s = 3e-6;  // of small_cluster()

sim::Job sharded(const std::string& optimizer, const std::string& extra = "") {
  const std::string batch = fmt::format("{{global: {}, micro: 1, sequence: 512}}", ranks * microbatches);
  return small_job(ranks, "{dp: 8}", batch, fmt::format("optimizer: {{{}}}\n{}", optimizer, extra));
}

double parameters_of(const sim::Job& job) { return workloads::layer_program(job.workload, false).parameters * job.workload.model.layers; }

// Every reduction but the last micro-batch's is saved, of (R - 1) / R of the gradients in fp32 and a lap of R - 1 hops for each layer; the
// last goes at once, in one lap. Hidden, neither costs anything but the last layer's.
TEST(NoSync, SavesAReductionForEachMicrobatchButTheLast) {
  for (const char* zero : {"zero2", "zero3"}) {
    const sim::Job each = sharded(fmt::format("sharding: {}", zero)), once = sharded(fmt::format("sharding: {}, no_sync: true", zero));
    const double bytes_s = parameters_of(each) * 4 * (ranks - 1) / ranks / port_bytes_per_s;
    const double laps_s = (microbatches * each.workload.model.layers - 1) * (ranks - 1) * hop_s;
    const double saved = sim::predict(each).step_s - sim::predict(once).step_s;
    EXPECT_NEAR(saved, (microbatches - 1) * bytes_s + laps_s, 1e-9 * saved) << zero;
    EXPECT_NEAR(sim::critical_path(once).result.step_s, sim::predict(once).step_s, 1e-9 * sim::predict(once).step_s) << zero;
  }
}

// From the first backward to the end of the step.
TEST(NoSync, HoldsGradientsWhole) {
  for (const char* zero : {"zero2", "zero3"}) {
    const sim::Job each = sharded(fmt::format("sharding: {}", zero)), once = sharded(fmt::format("sharding: {}, no_sync: true", zero));
    const double whole = parameters_of(each) * 4 * (ranks - 1) / ranks;
    const double more = sim::predicted_memory(once).ranks[0].tensor_bytes() - sim::predicted_memory(each).ranks[0].tensor_bytes();
    EXPECT_LE(more, whole * (1 + 1e-12)) << zero;
    EXPECT_GT(more, 0.8 * whole) << zero;  // ZeRO-2 needs no layer's gradients beside them
  }
}

TEST(NoSync, IsRefusedWhereGradientsAreReducedOnceAnyway) {
  for (const char* zero : {"none", "zero1"}) {
    EXPECT_THROW(static_cast<void>(sharded(fmt::format("sharding: {}, no_sync: true", zero))), config::InputError) << zero;
  }
}

// As many broadcasts as ranks (there are more tensors), each a lap of R - 1 hops, where an all-gather is one.
TEST(BroadcastsWeights, OneAfterAnother) {
  const sim::Job gathered = sharded("sharding: zero1");
  const sim::Job broadcast = sharded("sharding: zero1", "software: {like: megatron-core, broadcasts_weights: true}");
  const double later = sim::predict(broadcast).step_s - sim::predict(gathered).step_s;
  EXPECT_NEAR(later, (ranks - 1) * (ranks - 1) * hop_s, 1e-9);
  EXPECT_NEAR(sim::critical_path(broadcast).result.step_s, sim::predict(broadcast).step_s, 1e-9);
}

// No more owners than tensors, of which the word embedding is not cut: its owner holds the states of all of it.
TEST(BroadcastsWeights, WholeTensors) {
  workloads::Workload workload = sharded("sharding: zero1", "software: {like: megatron-core, broadcasts_weights: true}").workload;
  workload.model.vocab = 50257;
  workload.parallel.dp = workload.optimizer.shard_group = 1024;
  const workloads::ReplicaSync sync = workloads::replica_sync(workload);
  EXPECT_EQ(sync.owners, 8 * (4 + 4 + 2 * 2) + 3);  // matrices, biases, norms with theirs; embedding, head and last norm
  EXPECT_EQ(sync.shard(1e9, 0), 50257.0 * 1024);
}

// An update in a loop goes over what is trained: of adapters two tensors each, and queries, keys and values one by one where they are.
TEST(UpdatesInALoop, GoOverTrainedTensors) {
  const auto kernels = [](const char* lora, bool separate) {
    const std::string software = fmt::format(
        "software: {{like: megatron-core, fusions: {{optimizer: false}}, update_kernels: 10, separate_qkv: {}}}{}", separate, lora);
    const workloads::Workload workload = sharded("sharding: none", software).workload;
    return workloads::stage_programs(workload).front().update.back().kernels;
  };
  EXPECT_EQ(kernels("", false), 10 * 8 * (4 + 4 + 2 * 2));  // matrices, biases, norms with theirs; no words
  EXPECT_EQ(kernels("", true), 10 * 8 * (6 + 6 + 2 * 2));
  EXPECT_EQ(kernels("\nlora: {rank: 8, targets: [linear_qkv, linear_proj]}", false), 10 * 8 * 2 * 2);
}

}  // namespace
}  // namespace rehearse::tests
