// What the update of a step moves beside the optimizer's own passes.
#include <gtest/gtest.h>

#include "operators_workloads.hpp"

namespace rehearse::workloads::testing {
namespace {

// Of operators of that name, for 1e9 parameters with their states here, 3e9 gradients and 2e9 parameters of layers.
double bytes_of(const Workload& workload, const char* name) {
  double sum = 0;
  for (const Operator& op : optimizer_program(workload, 1e9, {3e9, 2e9}).update) sum += op.name == name ? op.bytes : 0;
  return sum;
}

int kernels_of(const Workload& workload, const char* name) {
  int sum = 0;
  for (const Operator& op : optimizer_program(workload, 1e9, {3e9, 2e9}).update) sum += op.name == name ? op.kernels : 0;
  return sum;
}

TEST(OnceAStep, AllGradientsAreSetToZeroAndWeightsCastOnceAStep) {
  // Of 3e9 fp32 gradients 4 bytes each; of 2e9 parameters of layers bf16 in 2, twice out in 8 bits, or in 4.
  Workload workload = llama(4, 1024, 16, 4, 2816, 32000, 1024, 2);
  EXPECT_EQ(bytes_of(workload, "gradients_to_zero") + bytes_of(workload, "weights_cast"), 0);
  workload.fusions.zeroes_gradients = workload.fusions.casts_weights = true;
  EXPECT_EQ(bytes_of(workload, "gradients_to_zero"), 3e9 * 4);
  EXPECT_EQ(bytes_of(workload, "weights_cast"), 0);
  workload.precision.compute = DType::fp8;
  EXPECT_EQ(bytes_of(workload, "weights_cast"), 2e9 * (2 + 2));
  workload.precision.compute = DType::fp4;
  EXPECT_EQ(bytes_of(workload, "weights_cast"), 2e9 * (2 + 1));
}

TEST(OnceAStep, BucketsOfGradientsAreReadForTheirNormsWhichTheHostChecks) {
  // Of 3e9 fp32 gradients: behind backward in buckets of 40 million, or one million for each replica; of a chunk each in pipelines, and of
  // all where nothing is hidden. Two checks of each.
  Workload workload = llama(4, 1024, 16, 4, 2816, 32000, 1024, 2);
  EXPECT_EQ(bytes_of(workload, "gradients_checked") + kernels_of(workload, "checks_awaited"), 0);
  workload.fusions.gradient_checks = 2;
  workload.overlap.dp_gradients = false;
  EXPECT_EQ(kernels_of(workload, "gradients_checked"), 1);
  workload.overlap.dp_gradients = true;
  workload.parallel.dp = 2;
  EXPECT_EQ(bytes_of(workload, "gradients_checked"), 3e9 * 4);
  EXPECT_EQ(bytes_of(workload, "checks_awaited"), 0) << "of the host alone";
  EXPECT_EQ(kernels_of(workload, "gradients_checked"), 75);
  EXPECT_EQ(kernels_of(workload, "checks_awaited"), 2 * 75);
  workload.parallel.dp = 100;
  EXPECT_EQ(kernels_of(workload, "checks_awaited"), 2 * 30);
  workload.parallel.pp = 2;
  workload.parallel.vpp = 3;
  EXPECT_EQ(kernels_of(workload, "checks_awaited"), 2 * 3);
}

TEST(OnceAStep, BucketsOfGradientsAreCopiedWhereReplicasReduceThem) {
  // Of 3e9 fp32 gradients: divided 4 + 4 bytes, cast to the weights' 16 bits 4 + 2, set to zero 4; the norm of 1e9 then reads 2, and not 4.
  Workload workload = llama(4, 1024, 16, 4, 2816, 32000, 1024, 2);
  workload.fusions.copies_buckets = true;
  workload.parallel.dp = 1;
  EXPECT_EQ(bytes_of(workload, "buckets_copied"), 0);
  EXPECT_EQ(bytes_of(workload, "gradient_norm"), 1e9 * 4);
  workload.parallel.dp = 2;
  EXPECT_EQ(bytes_of(workload, "buckets_copied"), 3e9 * (4 + 4 + 4 + 2 + 4));
  EXPECT_EQ(bytes_of(workload, "gradient_norm"), 1e9 * 2);
  // Who sets the buckets to zero has set all gradients to zero; one replica has no buckets.
  workload.fusions.zeroes_gradients = true;
  EXPECT_EQ(bytes_of(workload, "gradients_to_zero"), 0);
  workload.parallel.dp = 1;
  EXPECT_EQ(bytes_of(workload, "gradients_to_zero"), 3e9 * 4);
  workload.parallel.dp = 2;
  workload.precision.gradients = DType::bf16;
  EXPECT_EQ(bytes_of(workload, "buckets_copied"), 3e9 * (2 + 2 + 2)) << "nothing to cast";
}

}  // namespace
}  // namespace rehearse::workloads::testing
