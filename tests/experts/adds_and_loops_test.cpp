// Experts as PyTorch's own operators run them: sums of pairs by atomic adds, and loops over experts.
#include <gtest/gtest.h>

#include "jobs.hpp"
#include "workloads/expert_layer.hpp"

namespace rehearse::tests {
namespace {

using workloads::Operator;
using workloads::Pass;

// 4,096 tokens on each of 8 GPUs, 16 experts on each.
sim::Job qwen3_with(const std::string& experts) {
  const std::string text =
      "model: qwen3-30b-a3b\ncluster: dgx-h100-ndr400\ngpus: 8\nparallel: {dp: 8, ep: 8}\n"
      "batch: {global: 8, micro: 1, sequence: 4096}\nsoftware: {like: megatron-core, experts: " +
      experts + "}\n";
  return sim::read_job(config::Node::load_text(text, "job.yaml"), "job");
}

template <class Of>
double sum_of(const std::vector<Operator>& operators, const std::string& name, const Of& of) {
  double sum = 0;
  for (const Operator& op : operators) sum += op.name == name ? of(op) : 0;
  return sum;
}

double added_by(const std::vector<workloads::Item>& items, const std::string& name) {
  std::vector<Operator> operators;
  for (const workloads::Item& item : items) {
    if (const auto* op = std::get_if<Operator>(&item)) operators.push_back(*op);
  }
  return sum_of(operators, name, [](const Operator& op) { return op.adds; });
}

constexpr workloads::RoutedExperts forward_pass{Pass::forward}, backward_pass{Pass::backward_input, true};

// Forward of outputs, backward of what was gathered or sorted; the other way each pair is read once.
TEST(AddsAndLoops, SumsAreAddedElementByElementAsOftenAsTheStackSays) {
  const sim::Job job = qwen3_with("{token_adds: {forward: 1, backward: 2}, sort_adds: {forward: 0.5, backward: 3}}");
  const workloads::BlockProgram layer = workloads::layer_program(job.workload, false, workloads::LayerKind::experts);
  const double hidden = job.workload.model.hidden, sent = 4096.0 * 8 * hidden;
  EXPECT_DOUBLE_EQ(added_by(layer.forward, "unpermute"), sent);
  EXPECT_DOUBLE_EQ(added_by(layer.backward, "permute"), 2 * sent);
  EXPECT_EQ(added_by(layer.forward, "permute") + added_by(layer.backward, "unpermute"), 0);
  const workloads::ExpertLayer experts(job.workload);
  const auto of = [&](const workloads::RoutedExperts& what, const char* name) {
    const workloads::ExpertWork work = experts.work(what, 0, 0, 0);
    return sum_of(workloads::operators_of(job.workload, work), name, [](const Operator& op) { return op.adds; }) / (work.pairs * hidden);
  };
  EXPECT_DOUBLE_EQ(of(forward_pass, "unsort_tokens"), 0.5);
  EXPECT_DOUBLE_EQ(of(backward_pass, "sort_tokens"), 3);
  EXPECT_EQ(of(forward_pass, "sort_tokens") + of(backward_pass, "unsort_tokens"), 0);
}

// Of each expert the host issues more, and its weights' gradient is as large as that of all: zeros written, two read, their sum written.
TEST(AddsAndLoops, ExpertsInALoopAreLaunchedAndAddedUpOneByOne) {
  for (const bool grouped : {false, true}) {
    const sim::Job job = qwen3_with(fmt::format("{{grouped_gemm: {}, stacked: true, loop_kernels: {{forward: 3, backward: 5}}}}", grouped));
    const workloads::ExpertLayer experts(job.workload);
    const auto of = [&](const workloads::RoutedExperts& what, const char* name, const auto& count) {
      return sum_of(workloads::operators_of(job.workload, experts.work(what, 0, 0, 0)), name, count);
    };
    const auto kernels = [](const Operator& op) { return op.kernels; };
    constexpr int held = 16;
    EXPECT_EQ(of(forward_pass, "expert_loop", kernels), grouped ? 0 : 3 * held);
    EXPECT_EQ(of(backward_pass, "expert_loop", kernels), grouped ? 0 : 5 * held);
    const double weights = held * 3.0 * job.workload.model.hidden * job.workload.model.moe->ffn * 2;
    EXPECT_DOUBLE_EQ(of(backward_pass, "stacked_gradients", [](const Operator& op) { return op.bytes; }), grouped ? 0 : 4 * held * weights);
  }
}

// Three passes over both halves and their product become five, backward five eight, in two kernels each.
TEST(AddsAndLoops, EagerExpertsActivateOperatorByOperator) {
  const auto bytes = [](const Operator& op) { return op.bytes; };
  const auto kernels = [](const Operator& op) { return op.kernels; };
  const auto activated = [](const sim::Job& job, const workloads::RoutedExperts& what, const auto& of) {
    const workloads::ExpertLayer experts(job.workload);
    return sum_of(workloads::operators_of(job.workload, experts.work(what, 0, 0, 0)), "activation", of);
  };
  const sim::Job fused = qwen3_with("{eager: false}"), eager = qwen3_with("{eager: true}");
  EXPECT_DOUBLE_EQ(3 * activated(eager, forward_pass, bytes), 5 * activated(fused, forward_pass, bytes));
  EXPECT_DOUBLE_EQ(5 * activated(eager, backward_pass, bytes), 8 * activated(fused, backward_pass, bytes));
  EXPECT_EQ(activated(eager, forward_pass, kernels), 2);
  EXPECT_EQ(activated(eager, backward_pass, kernels), 2);
}

}  // namespace
}  // namespace rehearse::tests
