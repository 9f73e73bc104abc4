#include <gtest/gtest.h>

#include <fstream>

#include "config/data_dir.hpp"
#include "tests/job/sandbox.hpp"

namespace rehearse::sim {
namespace {

// Writes the resolved job into a folder of its own and loads that file.
Job reloaded(const Job& job) {
  const auto folder = std::filesystem::temp_directory_path() / ("rehearse-resolved-" + job.name);
  std::filesystem::create_directories(folder);
  const std::string path = (folder / "resolved-job.yaml").string();
  std::ofstream(path) << job.resolved.to_yaml();
  Job again = load_job({path, {}, {}});
  std::filesystem::remove_all(folder);
  return again;
}

void expect_same(const Job& job, const Job& again) {
  EXPECT_EQ(again.resolved.to_yaml(), job.resolved.to_yaml());
  EXPECT_EQ(input_hash(again), input_hash(job));
  EXPECT_EQ(again.name, job.name);
  EXPECT_EQ(again.system.gpus, job.system.gpus);
  EXPECT_EQ(again.workload.model.name, job.workload.model.name);
  EXPECT_EQ(again.workload.parallel.layers_per_stage, job.workload.parallel.layers_per_stage);
  EXPECT_EQ(again.system.cluster.name, job.system.cluster.name);
  EXPECT_EQ(again.system.cluster.gpu, job.system.cluster.gpu);
  EXPECT_EQ(again.system.cluster.nic.effective_bytes_per_s(), job.system.cluster.nic.effective_bytes_per_s());
  EXPECT_EQ(again.system.gpu.name, job.system.gpu.name);
  EXPECT_EQ(again.system.gpu.peak_flops_per_s, job.system.gpu.peak_flops_per_s);
  EXPECT_EQ(again.system.software.name, job.system.software.name);
  EXPECT_EQ(again.system.software.fusions, job.system.software.fusions);
}

TEST(DoesAResolvedJobRepeat, every_ready_made_job) {
  use_ready_made_files();
  const std::vector<std::string> names = config::data_names("workloads/jobs");
  EXPECT_GE(names.size(), 13U);
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    const Job job = load_job({name, {}, {}});
    expect_same(job, reloaded(job));
  }
}

TEST(DoesAResolvedJobRepeat, with_every_option_away_from_its_default) {
  enter_sandbox();
  const Job job = read_text(small_job(
      "name: 'a \"quoted\" name: #1'\n"
      "parallel: {tp: 2, cp: 2, pp: 2, dp: 2, vpp: 2, sp: true, cp_comm: all-gather, order: tp-cp-ep-pp-dp, layers_per_stage: [1, 3, 3, "
      "1]}\n"
      "precision: {compute: fp16, weights: fp16, gradients: bf16, optimizer: bf16}\nattention: flash\nrecompute: {full_layers: 2}\n"
      "optimizer: {sharding: zero3, shard_group: 2}\noverlap: {cp: false, pp: false, dp_gradients: true, dp_parameters: true, tp_splits: "
      "8}\n"
      "cuda_graphs: true\nsimulation: {granularity: operator, collectives: step, ranks: all, steps: 3, seed: 42}\n"
      "training: {tokens: 15e12}\ncheckpoint: {interval: 10 min, size: 1 TB, mode: async, to: disk}\nrecovery: {policy: shrink, repair: 4 "
      "h}\nfaults: {all: {source: poisson, rate: 0.005 /day}}\n"));
  const Job again = reloaded(job);
  expect_same(job, again);
  EXPECT_EQ(again.workload.parallel.order, job.workload.parallel.order);
  EXPECT_EQ(again.workload.recompute.full_layers, 2);
  EXPECT_EQ(again.workload.optimizer.zero_stage, 3);
  EXPECT_TRUE(again.system.software.replays_graphs);
  EXPECT_EQ(again.workload.optimizer.shard_group, 2);
  EXPECT_EQ(again.workload.parallel.cp_comm, workloads::ContextComm::all_gather);
  EXPECT_EQ(again.system.simulation.collectives, Fidelity::step);
  EXPECT_EQ(again.whole.training.tokens, 15e12);
  EXPECT_EQ(again.resolved.value("checkpoint.interval"), "10 min");
}

TEST(DoesAResolvedJobRepeat, the_hash_knows_every_setting) {
  enter_sandbox();
  const std::string hash = input_hash(read_text(small_job()));
  EXPECT_EQ(hash.size(), 16U);
  EXPECT_EQ(hash, input_hash(read_text(small_job("precision: bf16\nrecompute: none\n"))));  // the defaults, written down
  EXPECT_NE(hash, input_hash(read_text(small_job("recompute: full\n"))));
  EXPECT_NE(hash, input_hash(read_text(small_job("cuda_graphs: true\n"))));
  EXPECT_NE(hash, input_hash(read_text(small_job("simulation: {seed: 2}\n"))));
}

// FNV-1a, 64 bit: the published hash of "a" (Noll's test vectors) is af63dc4c8601ec8c; here the text is the whole resolved job.
TEST(DoesAResolvedJobRepeat, the_hash_is_fnv_1a) {
  Job job;
  job.resolved = ResolvedText("t", [] { return config::Node::scalar("a"); });  // written as "a\n"
  const std::uint64_t of_a = 0xaf63dc4c8601ec8cU;
  EXPECT_EQ(input_hash(job), [&] {
    char text[17];
    std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>((of_a ^ '\n') * 0x100000001b3ULL));
    return std::string(text);
  }());
}

}  // namespace
}  // namespace rehearse::sim
