// One collective alone on an otherwise idle cluster takes its closed form, in every fidelity that promises it.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/engine/collective_alone.hpp"
#include "topology/fabric.hpp"
#include "topology/flow_hash.hpp"

namespace rehearse::tests {
namespace {

using workloads::CollectiveKind;

// A node of 64, so that every group is in one scale-up domain; then nodes of one GPU, so that every hop crosses the network.
sim::Job flat_job(bool one_node) {
  sim::Job job = job_of_one_group(64);
  job.system.cluster.gpus_per_node = one_node ? 64 : 1;
  job.system.cluster.nics_per_node = one_node ? 64 : 1;
  return job;
}

struct Case {
  const char* algorithm;
  CollectiveKind kind;
  sim::Fidelity fidelity;
};

class CollectiveAlone : public testing::TestWithParam<Case> {};

TEST_P(CollectiveAlone, TakesItsClosedForm) {
  for (const bool one_node : {true, false}) {
    sim::Job job = flat_job(one_node);
    job.system.simulation.algorithm = GetParam().algorithm;
    job.system.simulation.collectives = GetParam().fidelity;
    for (const int n : {2, 3, 4, 5, 7, 8, 12, 16, 31, 32, 64}) {
      for (const double bytes : {65536.0, 1e8}) {
        const double expected = closed_form_s(job, GetParam().kind, n, bytes);
        EXPECT_NEAR(alone_s(job, GetParam().kind, n, bytes), expected, 1e-6 * expected)
            << n << " ranks, " << bytes << " bytes, one node " << one_node;
      }
    }
  }
}

std::vector<Case> cases() {
  using enum CollectiveKind;
  using enum sim::Fidelity;
  std::vector<Case> all;
  for (const auto fidelity : {step, closed}) {
    for (const auto kind : {all_reduce, all_gather, reduce_scatter}) {
      all.push_back({"ring", kind, fidelity});
      all.push_back({"halving-doubling", kind, fidelity});
      all.push_back({"hierarchical", kind, fidelity});
    }
    for (const auto kind : {all_reduce, broadcast}) all.push_back({"binomial", kind, fidelity});
    for (const auto kind : {all_reduce, all_gather, reduce_scatter, broadcast, all_to_all}) all.push_back({"direct", kind, fidelity});
    all.push_back({"tree", all_reduce, fidelity});
    all.push_back({"ring", broadcast, fidelity});
  }
  // One flow per edge: algorithms whose rounds all load the same ports.
  for (const auto kind : {all_reduce, all_gather, reduce_scatter}) all.push_back({"ring", kind, ring});
  return all;
}

std::string case_name(const testing::TestParamInfo<Case>& info) {
  std::string name = std::string(info.param.algorithm) + "_" + std::string(workloads::name_of(info.param.kind)) + "_" +
                     std::to_string(static_cast<int>(info.param.fidelity));
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Algorithms, CollectiveAlone, testing::ValuesIn(cases()), case_name);

// NCCL's other protocols: a call's own time, rounds and bytes of both kinds of link; a domain's ring also round by round.
TEST(CollectiveAloneByProtocol, TakesItsClosedForm) {
  using enum CollectiveKind;
  for (const int per_node : {64, 8, 1}) {
    sim::Job job = job_of_one_group(64);
    topology::ClusterSpec& cluster = job.system.cluster;
    cluster.gpus_per_node = cluster.nics_per_node = per_node;
    cluster.intra.ll = {9e-6, 1e-6, 0.2};
    cluster.nic.ll = {10e-6, 5e-6, 0.07};
    cluster.intra.ll128 = {15e-6, 2e-6, 0.5};
    cluster.nic.ll128 = {15e-6, 12e-6, 0.53};
    for (const auto protocol : {topology::Protocol::ll, topology::Protocol::ll128}) {
      job.system.simulation.protocol = protocol;
      for (const char* algorithm : {"ring", "tree"}) {
        job.system.simulation.algorithm = algorithm;
        for (const auto fidelity : {sim::Fidelity::ring, sim::Fidelity::step, sim::Fidelity::closed}) {
          job.system.simulation.collectives = fidelity;
          if (fidelity == sim::Fidelity::step && per_node == 8) continue;
          for (const double bytes : {4096.0, 1e7}) {
            const double expected = closed_form_s(job, all_reduce, 16, bytes);
            EXPECT_NEAR(alone_s(job, all_reduce, 16, bytes), expected, 1e-6 * expected)
                << algorithm << ", " << bytes << " bytes, nodes of " << per_node << ", fidelity " << static_cast<int>(fidelity);
          }
        }
      }
    }
  }
}

// In a supernode by a protocol that its own links list and those of its nodes do not.
TEST(CollectiveAloneByProtocol, OfASupernodeTakesItsClosedForm) {
  sim::Job job = job_of_one_group(64);
  topology::ClusterSpec& cluster = job.system.cluster;
  cluster.gpus_per_node = cluster.nics_per_node = 8;
  cluster.supernode_gpus = 64;
  cluster.supernode = cluster.intra;
  cluster.supernode.ll = {9e-6, 1e-6, 0.2};
  job.system.simulation.protocol = topology::Protocol::ll;
  job.system.simulation.algorithm = "ring";
  for (const auto fidelity : {sim::Fidelity::ring, sim::Fidelity::step, sim::Fidelity::closed}) {
    job.system.simulation.collectives = fidelity;
    for (const int members : {8, 16}) {
      const double expected = closed_form_s(job, CollectiveKind::all_gather, members, 65536);
      EXPECT_NEAR(alone_s(job, CollectiveKind::all_gather, members, 65536), expected, 1e-6 * expected)
          << members << " ranks, fidelity " << static_cast<int>(fidelity);
    }
  }
}

// A full mesh of 16: rings that share no link, direct exchanges over all links, and what uses one link after the other.
TEST(CollectiveAloneInAMesh, TakesItsClosedForm) {
  using enum CollectiveKind;
  sim::Job job = job_of_one_group(16);
  job.system.cluster.gpus_per_node = job.system.cluster.nics_per_node = 16;
  job.system.cluster.intra_kind = topology::IntraNode::full_mesh;
  for (const auto fidelity : {sim::Fidelity::ring, sim::Fidelity::step}) {
    job.system.simulation.collectives = fidelity;
    for (const char* algorithm : {"ring", "direct", "halving-doubling"}) {
      job.system.simulation.algorithm = algorithm;
      for (const auto kind : {all_reduce, all_gather, reduce_scatter, all_to_all}) {
        for (const int n : {2, 3, 5, 8, 16}) {
          const double expected = closed_form_s(job, kind, n, 1e8);
          EXPECT_NEAR(alone_s(job, kind, n, 1e8), expected, 1e-6 * expected) << algorithm << " " << name_of(kind) << ", " << n << " ranks";
        }
      }
    }
  }
}

// Nodes of 8 whose switch reduces at 0.7 of a port's rate: one node by nvls, several by nvls-tree.
TEST(CollectiveAloneInASwitch, TakesItsClosedForm) {
  using enum CollectiveKind;
  sim::Job job = job_of_one_group(64);
  job.system.cluster.in_switch = job.system.cluster.intra;
  job.system.cluster.in_switch.efficiency *= 0.7;
  job.system.cluster.in_switch.latency_s = 30e-6;
  for (const auto kind : {all_reduce, all_gather, reduce_scatter}) {
    job.system.simulation.algorithm = "nvls";
    const double expected = closed_form_s(job, kind, 8, 1e9);
    // (1 + 1/8) S at 0.7 of the rate, or S for half the work
    const double volume = kind == all_reduce ? 1.125e9 : 1e9;
    EXPECT_NEAR(expected, 30e-6 + volume / (0.7 * job.system.cluster.intra.effective_bytes_per_s()), 1e-9) << name_of(kind);
    EXPECT_NEAR(alone_s(job, kind, 8, 1e9), expected, 1e-6 * expected) << name_of(kind);
  }
  job.system.simulation.algorithm = "nvls-tree";
  for (const int n : {16, 32, 64}) {
    const double expected = closed_form_s(job, all_reduce, n, 1e9);
    EXPECT_NEAR(alone_s(job, all_reduce, n, 1e9), expected, 1e-6 * expected) << n;
  }
}

// Nodes of 8 on a network that reduces at 0.9 of a NIC's rate, with all leaves below one switch and with two nodes under each of four
// leaves that pass on a quarter: a leaf sends up each of its 8 rails' sums once, 8 x S/8 over 2 x 8 / 4 NICs' worth of uplinks.
TEST(CollectiveAloneOnAReducingNetwork, TakesItsClosedForm) {
  sim::Job job = job_of_one_group(64);
  topology::ClusterSpec& cluster = job.system.cluster;
  cluster.in_switch = cluster.intra;
  cluster.in_switch.latency_s = 30e-6;
  const double bytes = 1e9, port = cluster.intra.effective_bytes_per_s(), nic = cluster.nic.effective_bytes_per_s();
  for (const bool oversubscribed : {false, true}) {
    cluster.network = {};
    cluster.network.kind = oversubscribed ? topology::Network::leaf_spine : topology::Network::single_switch;
    cluster.network.trunk = cluster.network.in_switch = cluster.nic;
    cluster.network.in_switch.efficiency *= 0.9;
    cluster.network.in_switch.latency_s = 31e-6;
    if (oversubscribed) cluster.network.nodes_per_leaf = 2, cluster.network.oversubscription = 4;
    const double between_s = (oversubscribed ? 2 : 1) * bytes / 8 / (0.9 * nic);
    const std::map<std::string, double> expected{
        {"collnet", 2 * cluster.intra.latency_s + 31e-6 + std::max(2 * bytes * 7 / 8 / port, between_s)},
        {"nvls-sharp", 30e-6 + 31e-6 + std::max(bytes * 9 / 8 / port, between_s)}};
    for (const auto& [algorithm, seconds] : expected) {
      job.system.simulation.algorithm = algorithm;
      EXPECT_NEAR(closed_form_s(job, CollectiveKind::all_reduce, 64, bytes), seconds, 1e-9 * seconds) << algorithm;
      for (const auto fidelity : {sim::Fidelity::ring, sim::Fidelity::step}) {
        job.system.simulation.collectives = fidelity;
        EXPECT_NEAR(alone_s(job, CollectiveKind::all_reduce, 64, bytes), seconds, 1e-6 * seconds) << algorithm << " " << oversubscribed;
      }
    }
  }
}

// With ecmp each rail's sum climbs a tree of its own to the leaf of the member in whose name it is, and no leaf sends it up twice.
TEST(CollectiveAloneOnAReducingNetwork, SendsASumUpATreeWithEcmp) {
  sim::Job job = job_of_one_group(64);
  job.system.simulation.algorithm = "collnet";
  job.system.simulation.routing = sim::Routing::ecmp;
  job.system.simulation.collectives = sim::Fidelity::ring;
  topology::ClusterSpec& cluster = job.system.cluster;
  cluster.network = {};
  cluster.network.kind = topology::Network::leaf_spine;
  cluster.network.nodes_per_leaf = 2;
  cluster.network.trunk = cluster.network.in_switch = cluster.nic;
  const double bytes = 1e10, nic = cluster.nic.effective_bytes_per_s();
  for (const double oversubscription : {1.0, 4.0}) {
    cluster.network.oversubscription = oversubscription;
    const topology::Fabric fabric = topology::Fabric::build(cluster, 64);
    std::map<topology::LinkId, int> sums;  // rails whose sums a cable carries, up or down
    for (int rail = 0; rail < 8; ++rail) {
      std::set<topology::LinkId> tree;
      for (int node = 1; node < 8; ++node) {
        topology::Route route;
        fabric.route(rail, node * 8 + rail, topology::flow_hash(1, rail, rail), route, rail);
        for (const topology::LinkId link : route.links) {
          if (fabric.links()[link].kind == topology::LinkKind::trunk) tree.insert(link);
        }
      }
      EXPECT_EQ(tree.size(), 4) << "up from the root's leaf once, down to three others";
      for (const topology::LinkId link : tree) ++sums[link];
    }
    double between_s = bytes / 8 / nic;
    for (const auto& [link, rails] : sums) between_s = std::max(between_s, rails * bytes / 8 / fabric.links()[link].bandwidth_bytes_per_s);
    EXPECT_GT(between_s, 1.9 * bytes / 8 / nic) << "some rails meet";
    EXPECT_NEAR(alone_s(job, CollectiveKind::all_reduce, 64, bytes), between_s, 1e-3 * between_s) << oversubscription;
  }
}

// PCIe boxes of 8 whose GPUs reach each other and their NICs over one port: what leaves the box passes it too. V through each port, where a
// switch of its own would carry (g-1)/g V.
TEST(CollectiveAloneInPcieBoxes, TakesItsClosedForm) {
  using enum CollectiveKind;
  sim::Job job = job_of_one_group(32);
  job.system.simulation.collectives = sim::Fidelity::ring;
  job.system.cluster.intra_kind = topology::IntraNode::pcie;
  for (const double port : {25e9, 200e9}) {
    job.system.cluster.intra = {port, 1, 3e-6};
    for (const char* algorithm : {"ring", "hierarchical"}) {
      job.system.simulation.algorithm = algorithm;
      for (const auto kind : {all_reduce, all_gather, reduce_scatter}) {
        for (const int n : {8, 16, 32}) {
          const double expected = closed_form_s(job, kind, n, 1e9);
          EXPECT_NEAR(alone_s(job, kind, n, 1e9), expected, 1e-6 * expected) << algorithm << " " << name_of(kind) << ", " << n << " ranks";
          const double laps = kind == all_reduce ? 2 : 1, volume = laps * (n - 1) / n * 1e9;
          if (port == 25e9 && algorithm == std::string_view("ring")) {
            EXPECT_NEAR(expected, volume / port, 1e-2 * expected);
          }
        }
      }
    }
  }
}

// Groups over several nodes of 8: NCCL's rings over all NICs.
TEST(CollectiveAloneAcrossNodes, RingWithOneFlowPerEdge) {
  sim::Job job = job_of_one_group(64);
  job.system.simulation.algorithm = "ring";
  job.system.simulation.collectives = sim::Fidelity::ring;
  for (const int n : {16, 32, 64}) {
    for (const auto kind : {CollectiveKind::all_reduce, CollectiveKind::all_gather, CollectiveKind::reduce_scatter}) {
      const double expected = closed_form_s(job, kind, n, 1e9);
      EXPECT_NEAR(alone_s(job, kind, n, 1e9), expected, 1e-6 * expected) << n;
    }
  }
}

// Round by round the latencies hide behind the NICs but for the way to the first and a block's last lap, which the price knows.
TEST(CollectiveAloneAcrossNodes, RingRoundByRound) {
  sim::Job job = job_of_one_group(64);
  job.system.simulation.algorithm = "ring";
  for (const int n : {16, 32, 64}) {
    for (const auto kind : {CollectiveKind::all_reduce, CollectiveKind::all_gather, CollectiveKind::reduce_scatter}) {
      job.system.simulation.collectives = sim::Fidelity::ring;
      const double added_up = closed_form_s(job, kind, n, 1e9);
      job.system.simulation.collectives = sim::Fidelity::step;
      const double expected = closed_form_s(job, kind, n, 1e9);
      EXPECT_LT(expected, 0.999 * added_up) << n;
      EXPECT_NEAR(alone_s(job, kind, n, 1e9), expected, 1e-6 * expected) << n;
    }
  }
}

}  // namespace
}  // namespace rehearse::tests
