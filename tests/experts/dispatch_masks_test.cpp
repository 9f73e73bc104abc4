// Where MaxText drops tokens, what brings them to the experts' slots and back is products with masks.
#include <gtest/gtest.h>

#include "jobs.hpp"
#include "workloads/expert_layer.hpp"
#include "workloads/operators.hpp"

namespace rehearse::tests {
namespace {

struct Moved {
  double forward = 0, backward = 0, again = 0;  // flops over those of one product of tokens, slots and hidden size
  int sorts = 0;                                // kernels that sort around the experts
};

double flops_of(const std::vector<workloads::Item>& items) {
  double sum = 0;
  for (const workloads::Item& item : items) {
    const auto* op = std::get_if<workloads::Operator>(&item);
    if (op != nullptr && (op->name == "permute" || op->name == "unpermute")) sum += op->flops;
  }
  return sum;
}

// Mixtral, two sequences of 4,096 a GPU.
Moved moved(const std::string& rest) {
  const sim::Job job = sim::read_job(config::Node::load_text("model: mixtral-8x7b\ncluster: dgx-b200-ndr400\ngpus: 8\nparallel: {dp: 8, "
                                                             "ep: 4}\nbatch: {global: 16, micro: 2, sequence: 4096}\n" +
                                                                 rest,
                                                             "job.yaml"),
                                     "job");
  const workloads::BlockProgram layer =
      workloads::layer_program(job.workload, job.workload.recompute.kind == workloads::RecomputeKind::full, workloads::LayerKind::experts,
                               workloads::Reach::sequence);
  const double slots = 4096 * 2 * 1.25, once = 2 * 2 * 4096.0 * slots * job.workload.model.hidden;
  Moved moved{flops_of(layer.forward) / once, flops_of(layer.backward) / once, flops_of(layer.recompute) / once};
  const workloads::ExpertLayer experts(job.workload);
  for (const workloads::Operator& op : workloads::operators_of(job.workload, experts.work({workloads::Pass::forward}, 0, 0, 0)))
    moved.sorts += op.name.ends_with("sort_tokens") ? op.kernels : 0;
  return moved;
}

constexpr const char* dropping = "moe: {routing: balanced, capacity_factor: 1.25, pad_to: capacity}\n";

// Backward has one of dispatch, whose mask has no gradient, and two of combine; the sum of what experts gave is not computed again.
TEST(DispatchMasks, AreMultipliedWithTokensAndSlots) {
  const Moved kept = moved(std::string("software: maxtext\n") + dropping);
  EXPECT_DOUBLE_EQ(kept.forward, 2);
  EXPECT_DOUBLE_EQ(kept.backward, 3);
  EXPECT_EQ(kept.again, 0);
  EXPECT_EQ(kept.sorts, 0);
  EXPECT_DOUBLE_EQ(moved(std::string("software: maxtext\nrecompute: full\n") + dropping).again, 1);
}

// The layers' 8 bits are not theirs, and they are as many.
TEST(DispatchMasks, StayInSixteenBits) {
  EXPECT_DOUBLE_EQ(moved(std::string("software: maxtext\nprecision: fp8\n") + dropping).forward, 2);
}

TEST(DispatchMasks, AreOfStacksThatHaveThemAndOfSlotsAlone) {
  for (const std::string& rest : {std::string("software: maxtext\n"), "software: megatron-core\n" + std::string(dropping),
                                  "software: {like: maxtext, experts: {grouped_kernel: library}}\n" + std::string(dropping)}) {
    EXPECT_EQ(moved(rest).forward, 0) << rest;
    EXPECT_GT(moved(rest).sorts, 0) << rest;
  }
}

}  // namespace
}  // namespace rehearse::tests
