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

}  // namespace
}  // namespace rehearse::tests
