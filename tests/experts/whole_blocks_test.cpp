// Which stacks fill up each expert's rows for products in 8 bits, and when.
#include <gtest/gtest.h>

#include "jobs.hpp"
#include "workloads/expert_layer.hpp"

namespace rehearse::tests {
namespace {

struct Filled {
  double times = 0;  // the states of all pairs, read and written in 16 bits
  int kernels = 0;
};

// 128 experts of Qwen3 30B over 8 GPUs.
Filled filled(const std::string& rest, const workloads::RoutedExperts& what = {workloads::Pass::forward}) {
  const sim::Job job = sim::read_job(config::Node::load_text("model: qwen3-30b-a3b\ncluster: dgx-b200-ndr400\ngpus: 8\nparallel: {dp: 8, "
                                                             "ep: 8}\nbatch: {global: 8, micro: 1, sequence: 4096}\n" +
                                                                 rest,
                                                             "job.yaml"),
                                     "job");
  const workloads::ExpertLayer experts(job.workload);
  const workloads::ExpertWork work = experts.work(what, 0, 0, 0);
  Filled sum;
  for (const workloads::Operator& op : workloads::operators_of(job.workload, work)) {
    if (op.name != "block_copies") continue;
    sum.times += op.bytes / (2 * work.pairs * job.workload.model.hidden * 2);
    sum.kernels += op.kernels;
  }
  return sum;
}

constexpr const char* mxfp8 = "precision: {compute: fp8, recipe: mxfp8}\n";

TEST(WholeBlocks, AreFilledUpBehindTheAllToAll) {
  const std::string megatron = "software: megatron-core\n" + std::string(mxfp8);
  for (const char* moe : {"moe: {dispatcher: alltoall}\n", "moe: {dispatcher: allgather}\n"}) {
    const Filled forward = filled(megatron + moe), backward = filled(megatron + moe, {workloads::Pass::backward_input, true});
    EXPECT_DOUBLE_EQ(forward.times, 2.3);
    EXPECT_DOUBLE_EQ(backward.times, 2.3);
    EXPECT_EQ(forward.kernels, 3);
    EXPECT_EQ(backward.kernels, 3);
  }
}

// HybridEP fills up while it permutes; padded and dropped rows are whole blocks; graphs of whole steps know no ragged ones.
TEST(WholeBlocks, AreThereAlready) {
  const std::string megatron = "software: megatron-core\n" + std::string(mxfp8);
  for (const char* rest :
       {"moe: {dispatcher: hierarchical}\n", "moe: {pad_to: 32}\n", "moe: {capacity_factor: 1.25}\n", "cuda_graphs: true\n"})
    EXPECT_EQ(filled(megatron + rest).kernels, 0) << rest;
}

TEST(WholeBlocks, AreOfNarrowProductsAndTransformerEngineAlone) {
  EXPECT_EQ(filled("software: megatron-core\nprecision: bf16\n").kernels, 0);
  EXPECT_EQ(filled("software: torchtitan\n" + std::string(mxfp8)).kernels, 0);
}

}  // namespace
}  // namespace rehearse::tests
