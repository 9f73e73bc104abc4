// One collective alone in a supernode whose links are not as fast as those of its nodes: a GPU has a port on each fabric, and the price is
// what the busiest of them takes, whichever that is.
#include <gtest/gtest.h>

#include <string>

#include "tests/engine/collective_alone.hpp"
#include "topology/cluster.hpp"

namespace rehearse::tests {
namespace {

using workloads::CollectiveKind;

sim::Job supernode_job(topology::IntraNode kind, double node_bytes_per_s, double supernode_bytes_per_s, int supernode_gpus) {
  sim::Job job = job_of_one_group(32);
  topology::ClusterSpec& cluster = job.system.cluster;
  cluster.gpus_per_node = cluster.nics_per_node = 4;
  cluster.nodes = 8;
  cluster.intra_kind = kind;
  cluster.intra.bandwidth_bytes_per_s = node_bytes_per_s;
  cluster.intra.efficiency = 1;
  cluster.supernode_gpus = supernode_gpus;
  cluster.supernode = cluster.intra;
  cluster.supernode.bandwidth_bytes_per_s = supernode_bytes_per_s;
  job.system.simulation.collectives = sim::Fidelity::ring;
  return job;
}

TEST(CollectiveAloneInASupernode, TakesItsPrice) {
  using enum CollectiveKind;
  for (const topology::IntraNode kind : {topology::IntraNode::nvswitch, topology::IntraNode::full_mesh}) {
    for (const auto& [node, supernode] : {std::pair{100e9, 50e9}, {50e9, 100e9}, {100e9, 90e9}, {80e9, 80e9}}) {
      for (const int domain : {16, 32}) {
        sim::Job job = supernode_job(kind, node, supernode, domain);
        for (const std::string algorithm : {"ring", "tree", "hierarchical"}) {
          job.system.simulation.algorithm = algorithm;
          for (const int n : {6, 8, 16, 32}) {
            const double price = closed_form_s(job, all_reduce, n, 64e6);
            EXPECT_NEAR(alone_s(job, all_reduce, n, 64e6), price, 1e-6 * price)
                << algorithm << ", " << n << " GPUs, " << node << ' ' << supernode << ", domains of " << domain;
          }
        }
      }
    }
  }
}

// Twelve GPUs of three nodes: of a tree's 2 S through a GPU between nodes and inside its own, each fabric carries its part.
TEST(CollectiveAloneInASupernode, LeavesEachFabricItsPart) {
  sim::Job slow = supernode_job(topology::IntraNode::nvswitch, 100e9, 50e9, 32),
           both = supernode_job(topology::IntraNode::nvswitch, 50e9, 50e9, 32);
  slow.system.simulation.algorithm = both.system.simulation.algorithm = "tree";
  EXPECT_LT(closed_form_s(slow, CollectiveKind::all_reduce, 12, 1e9), 0.99 * closed_form_s(both, CollectiveKind::all_reduce, 12, 1e9));
}

}  // namespace
}  // namespace rehearse::tests
