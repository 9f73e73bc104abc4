// What a stack does around the exchange of tokens: sorts, and what travels beside them.
#include <gtest/gtest.h>

#include "jobs.hpp"
#include "workloads/exchange.hpp"
#include "workloads/expert_layer.hpp"
#include "workloads/stage_program.hpp"

namespace rehearse::tests {
namespace {

// Qwen3 30B, 128 experts over 8 GPUs.
sim::Job job_on_a_node(const std::string& extra) {
  const std::string text =
      "model: qwen3-30b-a3b\ncluster: dgx-h100-ndr400\ngpus: 8\nparallel: {dp: 8, ep: 8}\nbatch: {global: 8, micro: 1, sequence: 4096}\n" +
      extra;
  return sim::read_job(config::Node::load_text(text, "job.yaml"), "job");
}

// Added up without a kernel for it: zeros, and for each copy a read, and a read and write of what it is added to. Sorts cut 128 views.
TEST(ExpertOperators, AddUpAndSortWithoutAKernelForIt) {
  for (const bool fused : {false, true}) {
    const sim::Job job = job_on_a_node(fmt::format("software: {{like: megatron-core, experts: {{permutation: {}}}}}\n", fused));
    const workloads::BlockProgram layer = workloads::layer_program(job.workload, false, workloads::LayerKind::experts);
    const double states = 4096.0 * job.workload.model.hidden * 2, plain = 9 * states, added = fused ? plain : 25 * states;
    const auto moved = [](const std::vector<workloads::Item>& items, const std::string& name) {
      double bytes = 0;
      for (const workloads::Item& item : items) {
        const auto* op = std::get_if<workloads::Operator>(&item);
        if (op != nullptr && op->name == name) bytes += op->bytes;
      }
      return bytes;
    };
    EXPECT_DOUBLE_EQ(moved(layer.forward, "permute"), plain);
    EXPECT_DOUBLE_EQ(moved(layer.forward, "unpermute"), added);
    EXPECT_DOUBLE_EQ(moved(layer.backward, "permute"), added);
    EXPECT_DOUBLE_EQ(moved(layer.backward, "unpermute"), plain);
    const workloads::ExpertLayer experts(job.workload);
    const auto operators = workloads::operators_of(job.workload, experts.work({workloads::Pass::forward}, 0, 0, 0));
    int sorts = 0;
    for (const workloads::Operator& op : operators) sorts += op.name == "sort_tokens" ? op.kernels : 0;
    EXPECT_EQ(sorts, fused ? 1 : 1 + 128 / 16);
  }
}

// Counts before the tokens, unless each expert is filled up to what it takes at most; weights behind them, and their gradients in backward.
TEST(ExpertCalls, AreThoseOfTheStack) {
  const auto names = [](const std::vector<workloads::Communication>& calls) {
    std::string all;
    for (const workloads::Communication& call : calls) all += call.name + ", ";
    return all;
  };
  const auto said = [&](workloads::Pass pass, const char* moe, const char* habits) {
    const sim::Job job = job_on_a_node(fmt::format("moe: {}\nsoftware: {{like: megatron-core, experts: {}}}\n", moe, habits));
    const workloads::ExpertLayer experts(job.workload);
    const workloads::ExpertCalls& calls = experts.calls(pass, 0, 0, 0);
    return names(calls.dispatch) + "experts, " + names(calls.combine);
  };
  const char *both = "{gathers_counts: true, exchanges_weights: true}", *none = "{gathers_counts: false, exchanges_weights: false}";
  EXPECT_EQ(said(workloads::Pass::forward, "{dispatcher: alltoall}", both), "counts, dispatch, weights, experts, combine, ");
  EXPECT_EQ(said(workloads::Pass::backward_input, "{dispatcher: alltoall}", both),
            "dispatch gradients, experts, combine gradients, gradients of weights, ");
  EXPECT_EQ(said(workloads::Pass::forward, "{dispatcher: hierarchical}", both), "routing map, dispatch, experts, combine, ");
  EXPECT_EQ(said(workloads::Pass::backward_input, "{dispatcher: hierarchical}", both), "dispatch gradients, experts, combine gradients, ");
  EXPECT_EQ(said(workloads::Pass::forward, "{dispatcher: hierarchical}", "{gathers_counts: true, dispatch_kernels: deepep}"),
            "counts, dispatch, experts, combine, ");
  // HybridEP works out where tokens go from its map, whatever the stack does for other kernels.
  EXPECT_EQ(said(workloads::Pass::forward, "{dispatcher: hierarchical}", none), "routing map, dispatch, experts, combine, ");
  EXPECT_EQ(said(workloads::Pass::forward, "{dispatcher: allgather}", both), "dispatch, experts, combine, ");
  EXPECT_EQ(said(workloads::Pass::forward, "{dispatcher: alltoall, capacity_factor: 1}", both),
            "counts, dispatch, weights, experts, combine, ");
  EXPECT_EQ(said(workloads::Pass::forward, "{dispatcher: alltoall, capacity_factor: 1, pad_to: capacity}", both),
            "dispatch, weights, experts, combine, ");
  EXPECT_EQ(said(workloads::Pass::forward, "{dispatcher: alltoall}", none), "dispatch, experts, combine, ");
}

// A number for each of 128 experts: of 8 bytes, from every rank, in a gather; of 4, each to the expert's rank, by DeepEP.
TEST(ExpertCalls, CountsAreANumberForEachExpert) {
  const auto counts = [](const char* dispatcher) {
    const sim::Job job = job_on_a_node(
        fmt::format("moe: {{dispatcher: {}}}\nsoftware: {{like: megatron-core, experts: {{dispatch_kernels: deepep}}}}\n", dispatcher));
    return workloads::ExpertLayer(job.workload).calls(workloads::Pass::forward, 0, 0, 0).dispatch.front();
  };
  EXPECT_EQ(counts("alltoall").bytes, 8 * 128 * 8);
  const workloads::Communication each = counts("hierarchical");
  EXPECT_EQ(each.bytes, 128 * 4);
  for (int to = 0; to < 8; ++to) EXPECT_EQ(each.exchange->bytes(0, to), 16 * 4);
}

// Of experts that are cut over two GPUs, and spread over none, tokens are gathered again: nothing of it is kept.
TEST(ExpertCalls, AreMadeAgainWhereNothingIsDispatched) {
  const sim::Job job = sim::read_job(
      config::Node::load_text("model: qwen3-30b-a3b\ncluster: dgx-h100-ndr400\ngpus: 8\nparallel: {tp: 2, sp: true, etp: 2, dp: 4}\n"
                              "batch: {global: 8, micro: 1, sequence: 4096}\nrecompute: full\n"
                              "software: {like: megatron-core, experts: {replays_dispatch: true}}\n",
                              "job.yaml"),
      "job");
  const workloads::ExpertLayer experts(job.workload);
  EXPECT_EQ(experts.calls(workloads::Pass::recompute, 0, 0, 0).dispatch.size(), 1U);
  EXPECT_EQ(experts.calls(workloads::Pass::recompute, 0, 0, 0).combine.size(), 1U);
}

// What was dispatched and combined is taken from memory when a layer is computed again; gradients travel all the same.
TEST(ExpertCalls, AreNotMadeAgainWhereTheStackKeepsWhatTheyBrought) {
  for (const bool kept : {false, true}) {
    const sim::Job job =
        job_on_a_node(fmt::format("recompute: full\nsoftware: {{like: megatron-core, experts: {{replays_dispatch: {}}}}}\n", kept));
    const workloads::ExpertLayer experts(job.workload);
    EXPECT_EQ(experts.calls(workloads::Pass::recompute, 0, 0, 0).dispatch.empty(), kept);
    EXPECT_EQ(experts.calls(workloads::Pass::recompute, 0, 0, 0).combine.empty(), kept);
    EXPECT_FALSE(experts.calls(workloads::Pass::forward, 0, 0, 0).dispatch.empty());
    EXPECT_FALSE(experts.calls(workloads::Pass::backward_input, 0, 0, 0).dispatch.empty());
  }
}

}  // namespace
}  // namespace rehearse::tests
