// A ring has as many channels as the domain with the fewest members: the last node may hold one GPU of a job, behind a trunk that is
// shared.
#include <gtest/gtest.h>

#include "sim/analytic/predict.hpp"
#include "sim/engine/lone_collective.hpp"
#include "sim/engine/simulate.hpp"
#include "tests/engine/random_jobs.hpp"

namespace rehearse::tests {
namespace {

sim::Job replicas(int gpus, int per_node, int nics, int oversubscription) {
  return job_of(fmt::format(R"(
model: {{layers: 4, hidden: 1024, heads: 16, kv_heads: 16, ffn: 4096, activation: gelu, vocab: 0, positions: rope}}
cluster:{}
  gpus_per_node: {}
  intra_node: {{kind: nvswitch, bandwidth: 300 GB/s, efficiency: 0.8, latency: 3 us}}
  nics: {{per_node: {}, bandwidth: 100 Gbps, efficiency: 0.9, latency: 6 us}}
  network: {{kind: leaf_spine, nodes_per_leaf: 2, oversubscription: {}}}
  host: {{bandwidth: 20 GB/s, efficiency: 1, latency: 10 us}}
gpus: {}
parallel: {{dp: {}}}
batch: {{global: {}, micro: 1, sequence: 1024}}
precision: bf16
optimizer: {{sharding: zero1}}
)",
                            small_gpu("{dp: {alpha: 1, beta: 1}}"), per_node, nics, oversubscription, gpus, gpus, gpus));
}

TEST(DoLastNodesWithFewGpusCount, formula_and_timeline_agree) {
  for (const int per_node : {2, 3, 4, 8}) {
    for (const int nics : {1, per_node}) {
      for (const int oversubscription : {1, 2, 3}) {
        for (int gpus = 2 * per_node; gpus <= 4 * per_node + 1; ++gpus) {
          const sim::Job job = replicas(gpus, per_node, nics, oversubscription);
          const double formula = sim::predict(job).step_s, simulated = sim::simulate(job).result.step_s;
          EXPECT_NEAR(formula, simulated, 0.02 * simulated)
              << gpus << " GPUs, " << per_node << " a node with " << nics << " NICs, oversubscribed " << oversubscription;
        }
      }
    }
  }
}

// Each to the next: of GPUs that share a NIC one sends over it.
TEST(DoLastNodesWithFewGpusCount, messages_to_the_next) {
  for (const int per_node : {2, 3, 4, 8}) {
    for (const int nics : {1, per_node}) {
      for (int gpus = 2 * per_node; gpus <= 4 * per_node + 1; ++gpus) {
        const sim::Job job = sim::one_group(replicas(gpus, per_node, nics, 2), gpus);
        const sim::LoneCollective alone = sim::run_alone(job, workloads::CollectiveKind::send_recv, 64e6);
        EXPECT_NEAR(alone.formula_s, alone.simulated_s, 0.02 * alone.simulated_s)
            << gpus << " GPUs, " << per_node << " a node with " << nics;
      }
    }
  }
}

}  // namespace
}  // namespace rehearse::tests
