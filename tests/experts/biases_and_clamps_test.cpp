// What gpt-oss's experts have beside products and a gate: biases of both products, and clamps of what the gate reads.
#include <gtest/gtest.h>

#include "jobs.hpp"
#include "workloads/expert_layer.hpp"

namespace rehearse::tests {
namespace {

constexpr double ffn = 2880, bytes_per_element = 2;

// 32 experts of gpt-oss 20B, 128 of Qwen3 30B, over 8 GPUs.
sim::Job on_eight(const std::string& model, const std::string& rest) {
  return sim::read_job(config::Node::load_text(fmt::format("model: {}\ncluster: dgx-h100-ndr400\ngpus: 8\nparallel: {{dp: 8, ep: 8}}\n"
                                                           "batch: {{global: 8, micro: 1, sequence: 4096}}\n{}",
                                                           model, rest),
                                               "job.yaml"),
                       "job");
}

// Of the operators of this name: reads and writes of a tensor of so many elements a pair, and launches.
struct Copied {
  double times = 0;
  int kernels = 0;
};
Copied copied(const workloads::Workload& workload, const workloads::RoutedExperts& what, const char* name, double width,
              bool again = false) {
  const workloads::ExpertLayer experts(workload);
  workloads::ExpertWork work = experts.work(what, 0, 0, 0);
  work.again = again;
  Copied sum;
  for (const workloads::Operator& op : workloads::operators_of(workload, work)) {
    if (op.name != name) continue;
    EXPECT_TRUE(op.eager);
    sum.times += op.bytes / (2 * work.pairs * width * bytes_per_element);
    sum.kernels += op.kernels;
  }
  return sum;
}

void expect(const Copied& copied, double times, int kernels) {
  EXPECT_DOUBLE_EQ(copied.times, times);
  EXPECT_EQ(copied.kernels, kernels);
}

constexpr workloads::RoutedExperts forward_pass_of{workloads::Pass::forward}, backward_pass_of{workloads::Pass::backward_input, true};

// A kernel for each of four experts forward, three backward. Graphs hold nothing whose size the host must know; Qwen3's experts have none.
TEST(BiasesAndClamps, BiasesAreAddedExpertByExpert) {
  const auto second = [](const char* model, const char* rest, const workloads::RoutedExperts& what) {
    return copied(on_eight(model, rest).workload, what, "bias_copies", ffn);
  };
  expect(second("gpt-oss-20b", "software: megatron-core\n", forward_pass_of), 8.2, 4);
  expect(second("gpt-oss-20b", "software: megatron-core\n", backward_pass_of), 15, 12);
  expect(second("gpt-oss-20b", "software: megatron-core\ncuda_graphs: true\n", forward_pass_of), 0, 0);
  expect(second("qwen3-30b-a3b", "software: megatron-core\n", forward_pass_of), 0, 0);
}

// Of the first product, gate and up; gathered by token in one kernel for all experts.
TEST(BiasesAndClamps, BiasesAreAddedToBothProducts) {
  const auto of = [](const char* model, const char* gathered, const char* name, double width) {
    const std::string rest = fmt::format(
        "software: {{like: megatron-core, experts: {{gate_bias_copies: {{forward: 2, backward: 0.5}}, gathered_biases: {}}}}}\n", gathered);
    return copied(on_eight(model, rest).workload, forward_pass_of, name, width);
  };
  expect(of("gpt-oss-20b", "false", "gate_bias_copies", 2 * ffn), 2, 4);
  expect(of("gpt-oss-20b", "true", "gate_bias_copies", 2 * ffn), 2, 1);
  expect(of("gpt-oss-20b", "true", "bias_copies", ffn), 8.2, 1);
  expect(of("qwen3-30b-a3b", "true", "gate_bias_copies", 2 * ffn), 0, 0);
}

// Forward: both halves through a clamp, and joined. Not where the MLP is one kernel of a graph, nor where nothing is clamped.
TEST(BiasesAndClamps, ClampWhatTheModelClamps) {
  const auto clamped = [](const char* model, const char* rest) {
    return copied(on_eight(model, rest).workload, forward_pass_of, "clamp_copies", 2 * ffn).times;
  };
  EXPECT_DOUBLE_EQ(clamped("gpt-oss-20b", "software: megatron-core\n"), 2);
  EXPECT_EQ(clamped("gpt-oss-20b", "software: megatron-core\ncuda_graphs: true\n"), 0);
  EXPECT_EQ(clamped("qwen3-30b-a3b", "software: megatron-core\n"), 0);
}

// moe_act runs clamps again before backward, with the activation, and keeps nothing of them; otherwise what is clamped stays, gate and up.
TEST(BiasesAndClamps, ClampAgainWithTheActivation) {
  const auto of = [](const char* recompute) {
    return on_eight("gpt-oss-20b", fmt::format("software: megatron-core\nrecompute: {}\n", recompute)).workload;
  };
  EXPECT_DOUBLE_EQ(copied(of("{modules: [moe_act]}"), backward_pass_of, "clamp_copies", 2 * ffn, true).times, 2);
  const auto kept = [&](const char* recompute, bool clamps) {
    workloads::Workload workload = of(recompute);
    workload.model.clamps_gate = clamps;
    return workloads::received_activation_bytes(workload, false);
  };
  EXPECT_EQ(kept("none", true) - kept("none", false), 2 * ffn * bytes_per_element);
  EXPECT_EQ(kept("{modules: [moe_act]}", true), kept("{modules: [moe_act]}", false));
}

}  // namespace
}  // namespace rehearse::tests
