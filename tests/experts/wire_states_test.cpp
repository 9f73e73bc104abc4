// States that a dispatcher sends wider than they are: what travels, what is copied, and what recomputation spares.
#include <gtest/gtest.h>

#include "jobs.hpp"
#include "workloads/expert_layer.hpp"
#include "workloads/stage_program.hpp"

namespace rehearse::tests {
namespace {

using workloads::Pass;

constexpr const char* in_256s = "experts: {wire_multiple: 256}";

// gpt-oss (2,880 elements) over 8 GPUs, 4,096 tokens on each.
sim::Job job_that_sends(const std::string& software, const std::string& rest = "", const std::string& model = "gpt-oss-20b", int ep = 8) {
  return sim::read_job(
      config::Node::load_text(fmt::format("model: {}\ncluster: dgx-b200-ndr400\ngpus: 8\nparallel: {{dp: 8, ep: {}}}\n"
                                          "batch: {{global: 8, micro: 1, sequence: 4096}}\nsoftware: {{like: halo, {}}}\n{}",
                                          model, ep, software, rest),
                              "job.yaml"),
      "job");
}
constexpr const char* by_deepep = "moe: {dispatcher: hierarchical}\n";

double bytes_sent_forward(const sim::Job& job) {
  const workloads::ExpertLayer experts(job.workload);
  return experts.calls(Pass::forward, 0, 0, 0).dispatch.back().bytes;
}

// Reads and writes of rows of the model's width, in 16 bits.
double widened(const sim::Job& job, const std::vector<workloads::Item>& items) {
  double rows = 0;
  for (const workloads::Item& item : items) {
    const auto* op = std::get_if<workloads::Operator>(&item);
    if (op != nullptr && op->name == "wire_copies") rows += op->bytes / (2 * job.workload.model.hidden * 2);
  }
  return rows;
}

double widened_by_experts(const sim::Job& job, const workloads::RoutedExperts& what) {
  const workloads::ExpertLayer experts(job.workload);
  const auto all = workloads::operators_of(job.workload, experts.work(what, 0, 0, 0));
  return widened(job, {all.begin(), all.end()});
}

TEST(WireStates, TravelInWholeMultiples) {
  const sim::Job plain = job_that_sends("experts: {wire_multiple: 1}", by_deepep);
  EXPECT_DOUBLE_EQ(bytes_sent_forward(job_that_sends(in_256s, by_deepep)) / bytes_sent_forward(plain), 3072.0 / 2880);
  const std::string alltoall = "moe: {dispatcher: alltoall}\n";
  EXPECT_DOUBLE_EQ(bytes_sent_forward(job_that_sends(in_256s, alltoall)), bytes_sent_forward(plain));  // NCCL sends what there is
}

// A rank's own 4,096 tokens, and of the 32,768 of all those with one of their 4 experts among the 4 of 32 that are here:
// 1 - (28 27 26 25) / (32 31 30 29) of them.
TEST(WireStates, AreCopiedOnEitherSide) {
  const sim::Job job = job_that_sends(in_256s, by_deepep);
  const workloads::BlockProgram layer = workloads::layer_program(job.workload, false, workloads::LayerKind::experts);
  EXPECT_DOUBLE_EQ(widened(job, layer.forward), 2.5 * 4096);
  EXPECT_DOUBLE_EQ(widened(job, layer.backward), 2.5 * 4096);
  const double delivered = 32768 * (1 - 28.0 * 27 * 26 * 25 / (32.0 * 31 * 30 * 29));
  EXPECT_NEAR(widened_by_experts(job, {Pass::forward}), 2.5 * delivered, 1e-9 * delivered);
  EXPECT_NEAR(widened_by_experts(job, {Pass::backward_input, true}), 2.5 * delivered, 1e-9 * delivered);
}

// Qwen3 30B's 2,048 are a whole multiple; on one rank, or by an all-to-all, nothing is widened.
TEST(WireStates, AreCopiedOnlyWhereTheyAreWidened) {
  for (const sim::Job& job : {job_that_sends(in_256s, by_deepep, "qwen3-30b-a3b"), job_that_sends(in_256s, by_deepep, "gpt-oss-20b", 1),
                              job_that_sends(in_256s, "moe: {dispatcher: alltoall}\n")}) {
    EXPECT_EQ(widened(job, workloads::layer_program(job.workload, false, workloads::LayerKind::experts).forward), 0);
    EXPECT_EQ(widened_by_experts(job, {Pass::forward}), 0);
  }
}

// Recomputation that takes what was delivered from memory sends nothing and copies nothing; what dispatches anew does.
TEST(WireStates, AreNotCopiedAgainWhereNothingIsSent) {
  for (const bool replays : {true, false}) {
    const std::string software = fmt::format("experts: {{replays_dispatch: {}, wire_multiple: 256}}", replays);
    const sim::Job job = job_that_sends(software, std::string(by_deepep) + "recompute: full\n");
    const workloads::BlockProgram layer = workloads::layer_program(job.workload, true, workloads::LayerKind::experts);
    EXPECT_EQ(widened(job, layer.recompute) == 0, replays);
    EXPECT_EQ(widened_by_experts(job, {Pass::recompute}) == 0, replays);
  }
}

}  // namespace
}  // namespace rehearse::tests
