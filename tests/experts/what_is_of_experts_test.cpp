// For which kernels the host takes the time that a stack has for experts.
#include <gtest/gtest.h>

#include <set>

#include "jobs.hpp"
#include "workloads/expert_layer.hpp"
#include "workloads/stage_program.hpp"

namespace rehearse::tests {
namespace {

using workloads::Pass;

// Norm, router and shared experts are modules as those of a dense layer; what routes and sorts tokens and all that experts do is not.
TEST(HostTimeOfExperts, IsOfRoutingPermutationsAndExperts) {
  const sim::Job job = expert_job(8, "{dp: 8, ep: 8}", "{global: 8, micro: 1, sequence: 2048}", "software: megatron-core\n");
  const workloads::BlockProgram layer = workloads::layer_program(job.workload, false, workloads::LayerKind::experts);
  std::set<std::string> marked, others;
  for (const std::vector<workloads::Item>* items : {&layer.forward, &layer.backward}) {
    for (const workloads::Item& item : *items) {
      if (const auto* op = std::get_if<workloads::Operator>(&item)) (op->of_experts ? marked : others).insert(op->name);
    }
  }
  EXPECT_EQ(marked, (std::set<std::string>{"routing", "permute", "unpermute"}));
  for (const char* name : {"qkv", "router", "post_norm", "shared_fc1", "shared_fc2"}) EXPECT_TRUE(others.contains(name)) << name;
  const workloads::ExpertLayer experts(job.workload);
  for (const workloads::RoutedExperts& what : {workloads::RoutedExperts{Pass::forward}, {Pass::backward_input, true}}) {
    const auto operators = workloads::operators_of(job.workload, experts.work(what, 0, 0, 0));
    EXPECT_FALSE(operators.empty());
    for (const workloads::Operator& op : operators) EXPECT_TRUE(op.of_experts) << op.name;
  }
}

// What is made again of their activation as well.
TEST(HostTimeOfExperts, IsOfTheActivationThatIsMadeAgain) {
  const sim::Job job = expert_job(8, "{dp: 8, ep: 8}", "{global: 8, micro: 1, sequence: 2048}", "recompute: {modules: [moe_act]}\n");
  const workloads::ExpertLayer experts(job.workload);
  workloads::ExpertWork again = experts.work({Pass::backward_input, true}, 0, 0, 0);
  again.again = experts.again(again.what);
  EXPECT_TRUE(again.again);
  for (const workloads::Operator& op : workloads::operators_of(job.workload, again)) EXPECT_TRUE(op.of_experts) << op.name;
}

// Rotary embedding document by document is a loop of PyTorch's operators, as those are, also where attention is latent.
TEST(HostTimeOfExperts, IsOfRotaryEmbeddingDocumentByDocument) {
  for (const char* model : {"qwen3-30b-a3b", "deepseek-v2-lite"}) {
    for (const auto& [how, marked] :
         {std::pair{"fusions: {rope: false}", true}, std::pair{"fusions: {rope: false}, rope_by_document: false", false},
          std::pair{"fusions: {rope: true}", false}}) {
      const std::string text = fmt::format(
          "model: {}\ncluster: dgx-h100-ndr400\ngpus: 8\nparallel: {{dp: 8, ep: 8}}\nbatch: {{global: 8, micro: 1, sequence: 4096, "
          "document_tokens: 256}}\n"
          "software: {{like: megatron-core, {}}}\n",
          model, how);
      const sim::Job job = sim::read_job(config::Node::load_text(text, "job.yaml"), "job");
      const workloads::BlockProgram layer = workloads::layer_program(job.workload, false, workloads::LayerKind::experts);
      int found = 0;
      for (const std::vector<workloads::Item>* items : {&layer.forward, &layer.backward}) {
        for (const workloads::Item& item : *items) {
          const auto* op = std::get_if<workloads::Operator>(&item);
          if (op == nullptr || op->name != "rope") continue;
          ++found;
          EXPECT_EQ(op->of_experts, marked) << model << " " << how;
        }
      }
      EXPECT_EQ(found, 2) << model;
    }
  }
}

// What the stack says of `issue` counts where it says nothing of experts; half of it is less where experts wait for their host.
TEST(HostTimeOfExperts, ShortensStepsThatWaitForTheirHost) {
  const auto issued = [](const char* experts) {
    return expert_job(8, "{dp: 8, ep: 8}", "{global: 8, micro: 1, sequence: 2048}",
                      fmt::format("software: {{like: megatron-core, issue: 200 us{}}}\n", experts));
  };
  const sim::Job plain = issued(""), same = issued(", experts: {issue: 200 us}"), half = issued(", experts: {issue: 100 us}");
  EXPECT_FALSE(plain.system.software.experts_issue_s.has_value());
  EXPECT_EQ(half.system.software.experts_issue_s, 100e-6);
  const auto seconds = [](const sim::Job& job) {
    const workloads::ExpertLayer layer(job.workload);
    double sum = 0;
    for (const workloads::Operator& op : workloads::operators_of(job.workload, layer.work({Pass::forward}, 0, 0, 0)))
      sum += sim::operator_seconds(job.system.gpu, job.system.software, op);
    return sum;
  };
  EXPECT_EQ(seconds(plain), seconds(same));
  EXPECT_LT(seconds(half), seconds(plain));
}

// 40 and 35 kernels of an x86 server for each piece of a pair are 26 and 23 of GB200's, each of which takes its host 1.55 times as long.
TEST(HostTimeOfExperts, IsOfPairsWhatAnX86ServerTakes) {
  const auto pairing = [](const char* cluster) {
    const std::string text = fmt::format(
        "model: qwen3-30b-a3b\ncluster: {}\ngpus: 16\nparallel: {{pp: 2, dp: 8, ep: 8}}\nbatch: {{global: 64, micro: 1, sequence: 4096}}\n"
        "overlap: {{ep: true}}\nsoftware: megatron-core\n",
        cluster);
    const workloads::Workload workload = sim::read_job(config::Node::load_text(text, "job.yaml"), "job").workload;
    const workloads::BlockProgram layer = workloads::layer_program(workload, false, workloads::LayerKind::experts);
    const auto kernels = [](const std::vector<workloads::Item>& items) {
      int sum = 0;
      for (const workloads::Item& item : items) {
        if (const auto* op = std::get_if<workloads::Operator>(&item); op && op->name == "pairing") sum += op->kernels;
      }
      return sum;
    };
    return std::pair(kernels(layer.forward), kernels(layer.backward));
  };
  EXPECT_EQ(pairing("dgx-h100-ndr400"), std::pair(40, 35));
  EXPECT_EQ(pairing("gb200-nvl72"), std::pair(26, 23));
}

}  // namespace
}  // namespace rehearse::tests
