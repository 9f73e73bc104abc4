// FSDP's root (root_unit): embedding, last norm and head are gathered together when a forward begins, stay, and are reduced together when
// backward is over. Sums over the copies of a shard (hybrid sharding) have a stream of their own.
#include <gtest/gtest.h>

#include <random>
#include <tuple>

#include "../engine/jobs.hpp"
#include "sim/analytic/predict.hpp"
#include "sim/engine/lone_collective.hpp"
#include "sim/engine/simulate.hpp"
#include "workloads/stage_program.hpp"

namespace rehearse::tests {
namespace {

using workloads::CollectiveKind;

sim::Job rooted(bool root, int microbatches, int sequence, int nics, const std::string& extra = "") {
  const std::string batch = fmt::format("{{global: {}, micro: 1, sequence: {}}}", 16 * microbatches, sequence);
  sim::Job job = small_job(16, "{dp: 16}", batch,
                           "overlap: {dp_gradients: true, dp_parameters: true}\n"
                           "software: {like: megatron-core, launch: 0 us, issue: 0 us, step: 0 s}\noptimizer: {sharding: zero3}\n" +
                               extra,
                           nics);
  job.workload.model.vocab = 32000;
  job.workload.optimizer.root = root;
  return job;
}

// Seconds of a call of all 16.
double alone_s(const sim::Job& job, CollectiveKind kind, double parameters) {
  const workloads::ReplicaSync sync = workloads::replica_sync(job.workload);
  const double each = kind == CollectiveKind::all_gather ? sync.weight_bytes : sync.gradient_bytes;
  return sim::run_alone(job, kind, parameters * each).formula_s;
}

// Where computation is longer than what hides behind it, the head is in the open in every micro-batch. So is the embedding either way: what
// computes before and after it is too short.
TEST(FsdpsRoot, IsInTheOpenInEveryMicrobatch) {
  const auto more = [](bool root) {
    return sim::predict(rooted(root, 3, 16384, 8)).step_s - sim::predict(rooted(root, 2, 16384, 8)).step_s;
  };
  const sim::Job job = rooted(true, 1, 16384, 8);
  const std::vector<workloads::Unit> units = workloads::stage_programs(job.workload).front().chunks.front();
  const auto exchange_s = [&](double parameters) {
    return alone_s(job, CollectiveKind::all_gather, parameters) + alone_s(job, CollectiveKind::reduce_scatter, parameters);
  };
  const double table = units.front().program->parameters, both = table + units.back().program->parameters;
  const double later = exchange_s(both) - exchange_s(table);
  EXPECT_GT(more(true) - more(false), later * (1 - 1e-9));
  EXPECT_LT(more(true) - more(false), later * 1.1);  // the table's gather hid behind the embedding's backward, 48 us
}

// Where the network is never done, two gathers less of each end are what it saves.
TEST(FsdpsRoot, IsGatheredOnceForBothPasses) {
  const sim::Job job = rooted(true, 1, 64, 1);
  const double ends = workloads::stage_programs(job.workload).front().parameters.ends().all;
  const double saved = sim::predict(rooted(false, 1, 64, 1)).step_s - sim::predict(job).step_s;
  EXPECT_NEAR(saved, alone_s(job, CollectiveKind::all_gather, ends), 0.03 * saved);
}

// The root's parameters are the model's all the same, and only ZeRO-3 without a pipeline has one of both ends.
TEST(FsdpsRoot, HoldsBothEnds) {
  for (const bool root : {true, false}) {
    const std::vector<workloads::Unit> units = workloads::stage_programs(rooted(root, 1, 64, 1).workload).front().chunks.front();
    workloads::Parameters own, exchanged;
    for (const workloads::Unit& unit : units) {
      own += workloads::parameters_of(*unit.program);
      exchanged += unit.exchanged;
    }
    EXPECT_EQ(own.all, exchanged.all);
    EXPECT_EQ(units.front().leads_root, root);
    EXPECT_EQ(units.back().exchanged.all == 0, root);
  }
  sim::Job zero2 = rooted(true, 1, 64, 1);
  zero2.workload.optimizer.zero_stage = 2;
  EXPECT_FALSE(workloads::stage_programs(zero2.workload).front().chunks.front().front().leads_root);
}

// Without contention the formula is the longest path: FSDP1's joined gradients, FSDP2's copies, hybrid sharding, many micro-batches and
// copies to the host among it.
TEST(FsdpsRoot, IsTheLongestPath) {
  std::mt19937 random(3);
  for (int i = 0; i < 48; ++i) {
    const int microbatches = std::array{1, 2, 3, 9}[random() % 4], sequence = 64 << (2 * (random() % 4));
    sim::Job job = rooted(
        random() % 4 != 0, microbatches, sequence, random() % 2 == 0 ? 1 : 8,
        std::string(random() % 2 == 0 ? "recompute: none\n" : "recompute: full\n") + (i % 5 == 4 ? "offload: {activations: true}\n" : ""));
    workloads::Optimizer& optimizer = job.workload.optimizer;
    (random() % 2 == 0 ? optimizer.flat : optimizer.copies) = true;
    if (random() % 3 == 0) optimizer.shard_group = 8;
    if (random() % 4 == 0) optimizer.no_sync = true;
    const double longest = sim::critical_path(job).result.step_s;
    EXPECT_NEAR(sim::predict(job).step_s, longest, 1e-9 * longest) << i << " " << microbatches << " " << sequence;
  }
}

// Eight shards on NVSwitch, two copies over one NIC a node: gathers do not wait for sums of the layers behind, which keep only one another
// waiting.
TEST(SumsOfCopies, LetGathersPass) {
  sim::Job beside = rooted(false, 1, 64, 1), in_line = beside;
  for (sim::Job* job : {&beside, &in_line}) job->workload.optimizer.shard_group = 8;
  beside.workload.optimizer.flat = beside.workload.optimizer.joins_at_once = true;
  EXPECT_TRUE(workloads::replica_sync(beside.workload).copies_beside);
  EXPECT_FALSE(workloads::replica_sync(in_line.workload).copies_beside);
  EXPECT_LT(sim::predict(beside).step_s, sim::predict(in_line).step_s);
  const double simulated = sim::simulate(beside).result.step_s;
  EXPECT_NEAR(sim::predict(beside).step_s, simulated, 0.02 * simulated);
}

// Where parameters come when their turn does, each gather waits for them; units that gather nothing do not.
TEST(SumsOfCopies, KeepGathersAloneWaiting) {
  for (const bool root : {true, false}) {
    sim::Job job = rooted(root, 3, 1024, 1);
    job.workload.optimizer.shard_group = 8;
    job.workload.optimizer.flat = true;
    job.workload.overlap.dp_parameters = false;
    const double longest = sim::critical_path(job).result.step_s;
    EXPECT_NEAR(sim::predict(job).step_s, longest, 1e-9 * longest) << root;
  }
}

// Computation beside them is slowed as beside other exchanges, where these have ended: without that the formula was 3.7 % short of one
// step.
TEST(SumsOfCopies, SlowComputationBesideThem) {
  for (const int sequence : {4096, 8192, 16384}) {
    sim::Job job = rooted(true, 2, sequence, 1);
    job.workload.optimizer.shard_group = 8;
    job.workload.optimizer.flat = true;
    const double free_s = sim::predict(job).step_s;
    job.system.gpu.contention[workloads::Phase::dp] = {1.3, 1};
    const double simulated = sim::simulate(job).result.step_s;
    EXPECT_GT(simulated, 1.01 * free_s) << sequence;
    EXPECT_NEAR(sim::predict(job).step_s, simulated, 0.02 * simulated) << sequence;
  }
}

// A port that both use is divided: in a box of one port for each GPU, and over NICs where a shard group has several nodes. The formula,
// which had each alone, was 27, 9 and 4.5 % short.
TEST(SumsOfCopies, HoldUpTheirShardsCallsOnAPortOfBoth) {
  for (const auto& [cluster, gpus, shard_group] :
       {std::tuple{"a100-pcie-8", 8, 2}, std::tuple{"a100-pcie-8", 8, 4}, std::tuple{"dgx-a100-80g-hdr200", 32, 16}}) {
    const std::string text = fmt::format(R"(
model: {{layers: 8, hidden: 1024, heads: 16, kv_heads: 16, ffn: 4096, activation: gelu, vocab: 32000, positions: rope}}
cluster: {0}
gpus: {1}
batch: {{global: {1}, micro: 1, sequence: 256}}
software: {{like: torchtitan-2024, launch: 0 us, issue: 0 us, step: 0 s}}
optimizer: {{sharding: zero3, shard_group: {2}}}
overlap: {{dp_gradients: true, dp_parameters: true}})",
                                         cluster, gpus, shard_group);
    const sim::Job job = sim::read_job(config::Node::load_text(text, "shared.yaml"), "shared");
    ASSERT_TRUE(workloads::replica_sync(job.workload).copies_beside);
    const double simulated = sim::simulate(job).result.step_s;
    EXPECT_NEAR(sim::predict(job).step_s, simulated, 0.03 * simulated) << cluster << " " << shard_group;
  }
}

}  // namespace
}  // namespace rehearse::tests
