// What a communication costs depends on where its members sit: the algebra of alpha, ports, shared NICs and oversubscribed trunks.
#include "sim/cost/communication.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <set>
#include <thread>

namespace rehearse::sim {
namespace {

using workloads::CollectiveKind;
using workloads::GroupKind;

topology::ClusterSpec cluster() {
  topology::ClusterSpec c;
  c.gpus_per_node = 8;
  c.intra = {300e9, 0.8, 3e-6};
  c.nics_per_node = 8;
  c.nic = {25e9, 0.9, 6e-6};
  c.network.kind = topology::Network::leaf_spine;
  c.network.nodes_per_leaf = 2;
  return c;
}

workloads::Workload plan(int tp, int dp, int pp) {
  workloads::Workload w;
  w.parallel.tp = tp;
  w.parallel.dp = dp;
  w.parallel.pp = pp;
  return w;
}

std::vector<int> ranks(int count, int stride = 1) {
  std::vector<int> members(count);
  for (int i = 0; i < count; ++i) members[i] = i * stride;
  return members;
}

workloads::Communication all_gather(GroupKind group, double bytes) {
  return {"x", CollectiveKind::all_gather, group, bytes, workloads::Pass::forward};
}

TEST(CommunicationPrice, RingInsideANode) {
  // (n-1) rounds, (n-1)/n of the output through every port.
  const CallPrice price = CommunicationModel(cluster(), plan(8, 1, 1), "ring").price(all_gather(GroupKind::tp, 8e8), ranks(8));
  EXPECT_DOUBLE_EQ(price.seconds(), 7 * 3e-6 + 7e8 / (300e9 * 0.8));
}

TEST(CommunicationPrice, OneRankPerNodeGoesThroughItsNic) {
  const CallPrice price = CommunicationModel(cluster(), plan(8, 4, 1), "ring").price(all_gather(GroupKind::dp_cp, 4e8), ranks(4, 8));
  EXPECT_DOUBLE_EQ(price.seconds(), 3 * 6e-6 + 3e8 / (25e9 * 0.9));
}

TEST(CommunicationPrice, TwoGpusOnOneNicHaveHalfOfItEach) {
  topology::ClusterSpec c = cluster();
  c.nics_per_node = 4;
  const CallPrice price = CommunicationModel(c, plan(8, 4, 1), "ring").price(all_gather(GroupKind::dp_cp, 4e8), ranks(4, 8));
  EXPECT_DOUBLE_EQ(price.transfer_s(), 3e8 / (25e9 * 0.9 / 2));
}

// tp 2, dp 3 on nodes of four: of the two groups of dp, each with two members in the first node and one in the second, one channel each
// leaves the node.
TEST(CommunicationPrice, ANicIsDividedAmongThoseWhoSend) {
  topology::ClusterSpec c = cluster();
  c.gpus_per_node = 4;
  c.nics_per_node = 1;
  const std::vector<int> group{0, 2, 4};
  const CallPrice price = CommunicationModel(c, plan(2, 3, 1), "ring").price(all_gather(GroupKind::dp_cp, 3e8), group);
  EXPECT_DOUBLE_EQ(price.transfer_s(), 2e8 / (25e9 * 0.9 / 2));
  // Four of eight stages to a node: the last one's activations leave it, and the first one's gradients.
  const workloads::Communication message{"x", CollectiveKind::send_recv, GroupKind::pp, 1e8, workloads::Pass::forward};
  EXPECT_DOUBLE_EQ(CommunicationModel(c, plan(1, 1, 8), "ring").price(message, std::array{3, 4}).transfer_s(), 1e8 / (25e9 * 0.9 / 2));
  // A node to a leaf, uplinks oversubscribed 4:1, two stages to a node: two messages over what four NIC shares have above them.
  c.network.nodes_per_leaf = 1;
  c.network.oversubscription = 4;
  EXPECT_DOUBLE_EQ(CommunicationModel(c, plan(2, 1, 4), "ring").price(message, std::array{2, 4}).transfer_s(), 1e8 / (25e9 * 0.9 / 4 / 2));
}

// One NIC to a node of four. Ring attention over two nodes: of four members in a node one has the next of the ring in the other. A ring's
// all-gather leaves the node on four channels.
TEST(CommunicationPrice, AShiftLeavesANodeOnce) {
  topology::ClusterSpec c = cluster();
  c.gpus_per_node = 4;
  c.nics_per_node = 1;
  workloads::Workload w = plan(1, 1, 1);
  w.parallel.cp = 8;
  const CommunicationModel model(c, w, "ring");
  const workloads::Communication shift{"x", CollectiveKind::send_recv, GroupKind::cp, 1e8, workloads::Pass::forward};
  EXPECT_DOUBLE_EQ(model.price(shift, ranks(8)).transfer_s(), 1e8 / (25e9 * 0.9));
  EXPECT_DOUBLE_EQ(model.price(all_gather(GroupKind::cp, 8e8), ranks(8)).transfer_s(), 7e8 / (25e9 * 0.9));
}

// tp 2, dp 3 on nodes of four with a NIC for each GPU. Ranks 0, 2 and 4 lie on the first rail of two nodes; of 6, 8 and 10 the first is
// alone on the third rail of a node that it shares with 4, and so the ring comes back to it over that: two stages, and no NIC with two.
TEST(CommunicationPrice, ARingKeepsToRailsThatBothNodesHave) {
  topology::ClusterSpec c = cluster();
  c.gpus_per_node = c.nics_per_node = 4;
  const CommunicationModel model(c, plan(2, 3, 2), "ring");
  for (const auto& members : {std::array{0, 2, 4}, std::array{6, 8, 10}})
    EXPECT_DOUBLE_EQ(model.price(all_gather(GroupKind::dp_cp, 3e8), members).transfer_s(), 2e8 / (25e9 * 0.9));
}

// Two nodes of eight, each a leaf whose uplinks are oversubscribed 7:1. Of two groups of eight ranks four are in each node, and a ring of
// each leaves it on four channels: eight flows of eight ports, whatever is innermost of what lies inside the node, and in whatever order
// the group names its members.
TEST(CommunicationPrice, TrunksAreCrossedOncePerChannelInAnyOrderOfTheMembers) {
  topology::ClusterSpec c = cluster();
  c.network.nodes_per_leaf = 1;
  c.network.oversubscription = 7;
  workloads::Workload w = plan(2, 2, 1);
  w.parallel.cp = 4;
  for (const std::vector<std::string>& order : {std::vector<std::string>{"tp", "cp", "ep", "dp", "pp"}, {"dp", "tp", "cp", "ep", "pp"}}) {
    w.parallel.order = order;
    const std::vector<int> members = workloads::rank_grid(w).group(GroupKind::dp_cp, 0);
    const CallPrice price = CommunicationModel(c, w, "ring").price(all_gather(GroupKind::dp_cp, 8e8), members);
    EXPECT_DOUBLE_EQ(price.transfer_s(), 7e8 / 4 / (25e9 * 0.9 / 7)) << order.front();
  }
}

// One NIC to a node: 4 and 5, of one stage, share it with 6 and 7, of the other.
TEST(CommunicationPrice, StagesInOneNodeShareItsOnlyNic) {
  topology::ClusterSpec c = cluster();
  c.gpus_per_node = 4;
  c.nics_per_node = 1;
  const CallPrice price = CommunicationModel(c, plan(2, 3, 2), "ring").price(all_gather(GroupKind::dp_cp, 3e8), std::array{0, 2, 4});
  EXPECT_DOUBLE_EQ(price.transfer_s(), 2e8 / (25e9 * 0.9 / 4));
  EXPECT_DOUBLE_EQ(price.alone().transfer_s(), 2e8 / (25e9 * 0.9 / 2));
}

TEST(CommunicationPrice, FourNicsPerGpuAddUp) {
  topology::ClusterSpec c = cluster();
  c.nics_per_node = 32;
  const CallPrice price = CommunicationModel(c, plan(8, 4, 1), "ring").price(all_gather(GroupKind::dp_cp, 4e8), ranks(4, 8));
  EXPECT_DOUBLE_EQ(price.transfer_s(), 3e8 / (4 * 25e9 * 0.9));
}

TEST(CommunicationPrice, PcieLimitsTheNic) {
  topology::ClusterSpec c = cluster();
  c.pcie_bytes_per_s = 10e9;
  const CallPrice price = CommunicationModel(c, plan(8, 4, 1), "ring").price(all_gather(GroupKind::dp_cp, 4e8), ranks(4, 8));
  EXPECT_DOUBLE_EQ(price.transfer_s(), 3e8 / 10e9);
}

// A node to a leaf, uplinks oversubscribed 4:1. The first of 16 ranks sends three pairs to each where the others send one: 24 leave its
// port, but of the leaf's eight ports together 24 + 7 x 8, which the uplinks carry at a quarter of the ports' rate.
TEST(CommunicationPrice, TrunksCarryWhatALeafSendsNotEightTimesItsBusiestPort) {
  topology::ClusterSpec c = cluster();
  c.network.nodes_per_leaf = 1;
  c.network.oversubscription = 4;
  workloads::Workload w = plan(1, 16, 1);
  w.parallel.ep = 16;
  std::vector<double> pairs(16 * 16, 1);
  std::fill_n(pairs.begin(), 16, 3);
  auto exchange = std::make_shared<workloads::Exchange>();
  exchange->by_sender = std::make_shared<const std::vector<double>>(pairs);
  exchange->bytes_per_pair = 1e6;
  workloads::Communication what{"x", CollectiveKind::all_to_all, GroupKind::ep, 0, workloads::Pass::forward};
  what.exchange = exchange;
  const double nic = 25e9 * 0.9;
  const CallPrice over = CommunicationModel(c, w, "auto").price(what, ranks(16));
  EXPECT_DOUBLE_EQ(over.inter_bytes / over.inter_bytes_per_s, (24e6 + 7 * 8e6) / 8 * 4 / nic);
  c.network.oversubscription = 2;  // the busiest port takes longer than the uplinks
  const CallPrice port = CommunicationModel(c, w, "auto").price(what, ranks(16));
  EXPECT_DOUBLE_EQ(port.inter_bytes / port.inter_bytes_per_s, 24e6 / nic);
}

// One NIC to a node of four. The first of eight ranks sends three pairs to each where the others send one: 12 of its own leave the node and
// 4 of each of the others, 24 over the NIC, not four times what its port has.
TEST(CommunicationPrice, ANicCarriesWhatItsNodeSendsNotFourTimesItsBusiestPort) {
  topology::ClusterSpec c = cluster();
  c.gpus_per_node = 4;
  c.nics_per_node = 1;
  workloads::Workload w = plan(1, 8, 1);
  w.parallel.ep = 8;
  std::vector<double> pairs(8 * 8, 1);
  std::fill_n(pairs.begin(), 8, 3);
  auto exchange = std::make_shared<workloads::Exchange>();
  exchange->by_sender = std::make_shared<const std::vector<double>>(pairs);
  exchange->bytes_per_pair = 1e6;
  workloads::Communication what{"x", CollectiveKind::all_to_all, GroupKind::ep, 8e6, workloads::Pass::forward};
  what.exchange = exchange;
  EXPECT_DOUBLE_EQ(CommunicationModel(c, w, "ring").price(what, ranks(8)).transfer_s(), 24e6 / (25e9 * 0.9));
  c.nics_per_node = 4;  // one to a GPU: the busiest port counts
  EXPECT_DOUBLE_EQ(CommunicationModel(c, w, "ring").price(what, ranks(8)).transfer_s(), 12e6 / (25e9 * 0.9));
}

// Two nodes to a leaf, uplinks oversubscribed 4:1. A ring of one rank per node leaves each leaf once, with one flow per local GPU: 8 flows
// for the 16 GPUs of the leaf, half a flow per GPU on a quarter of its bandwidth: half of the NIC's rate is left.
TEST(CommunicationPrice, OversubscribedTrunksSlowWhatCrossesThem) {
  topology::ClusterSpec c = cluster();
  c.network.oversubscription = 4;
  const CommunicationModel model(c, plan(8, 4, 1), "ring");
  EXPECT_DOUBLE_EQ(model.price(all_gather(GroupKind::dp_cp, 4e8), ranks(4, 8)).transfer_s(), 3e8 / (25e9 * 0.9 / 2));
  // Tensor-parallel groups stay in their node.
  EXPECT_DOUBLE_EQ(model.price(all_gather(GroupKind::tp, 8e8), ranks(8)).transfer_s(), 7e8 / (300e9 * 0.8));
}

// What is kept of the last model is not taken for another: a new thread has kept nothing.
// Rank by rank: flows out of the leaf that most leave, per GPU in it. Stages send to the next; of other groups each channel goes from node
// to node, as the group comes to them, and back to the first.
double busiest_leaf(const workloads::RankGrid& grid, GroupKind kind, int leaf_gpus, int domain_gpus) {
  std::map<int, int> flows;
  std::set<std::vector<int>> groups;
  for (int rank = 0; rank < grid.size(); ++rank) {
    const std::vector<int> members = grid.group(kind, rank);
    if (std::ranges::find(members, rank) == members.end() || !groups.insert(members).second) continue;
    std::map<int, int> in_domain;
    std::vector<int> walk;  // a member of each domain, or all stages
    for (const int member : members) {
      if (in_domain[member / domain_gpus]++ == 0 || kind == GroupKind::pp) walk.push_back(member);
    }
    int channels = static_cast<int>(members.size());  // as many as the domain with the fewest has, each over a NIC of its own
    for (const auto& [domain, number] : in_domain) channels = std::min(channels, number);
    if (kind == GroupKind::pp) channels = 1;
    for (std::size_t i = 0; i < walk.size(); ++i) {
      const int from = walk[i] / leaf_gpus, to = walk[(i + 1) % walk.size()] / leaf_gpus;
      if (from != to) flows[from] += channels;
    }
  }
  int most = 0;
  for (const auto& [leaf, number] : flows) most = std::max(most, number);
  return static_cast<double>(most) / leaf_gpus;
}

// Uplinks oversubscribed so much that they decide: a GPU's share of them is what the busiest leaf leaves to it.
TEST(CommunicationPrice, TrunksAreSharedAsInTheBusiestLeaf) {
  std::mt19937 random(11);
  const auto pick = [&](const std::vector<int>& values) { return values[random() % values.size()]; };
  int shared = 0;
  for (int round = 0; round < 2000; ++round) {
    workloads::Workload w = plan(pick({1, 2, 3, 4}), pick({1, 2, 3, 4, 6}), pick({1, 2, 3, 4}));
    w.parallel.cp = pick({1, 2, 3});
    w.parallel.ep = pick({1, 2, 4});
    const int ranks_of_stage = w.parallel.tp * w.parallel.cp * w.parallel.dp;
    if (ranks_of_stage % w.parallel.ep != 0) continue;
    for (std::size_t i = w.parallel.order.size(); i > 1; --i) std::swap(w.parallel.order[i - 1], w.parallel.order[random() % i]);
    if (w.parallel.pp % 2 == 0 && round % 4 == 0) w.schedule = "dualpipe";
    if (round % 3 == 0 && w.parallel.dp % 2 == 0) w.optimizer.shard_group = 2;
    topology::ClusterSpec c = cluster();
    c.gpus_per_node = c.nics_per_node = pick({1, 2, 4, 8});
    c.network.nodes_per_leaf = pick({1, 2, 3});
    c.network.oversubscription = 1000;
    const CommunicationModel model(c, w, "ring");
    const workloads::RankGrid grid = workloads::rank_grid(w);
    for (int number = 0; number < workloads::network_group_kinds; ++number) {
      const auto kind = static_cast<GroupKind>(number);
      if (kind == GroupKind::edp && !grid.experts_keep_stages()) continue;  // where stages are mirrored, groups would overlap
      const double flows = busiest_leaf(grid, kind, c.network.nodes_per_leaf * c.gpus_per_node, c.gpus_per_node);
      if (flows == 0) continue;
      ++shared;
      EXPECT_DOUBLE_EQ(model.price(all_gather(kind, 1e8), grid.group(kind, 0)).inter_bytes_per_s, 25e9 * 0.9 / (1000 * flows))
          << name_of(kind) << ' ' << round;
    }
  }
  EXPECT_GT(shared, 3000);
}

TEST(CommunicationPrice, ModelsMadeOneAfterTheOtherHaveTrunksOfTheirOwn) {
  topology::ClusterSpec c = cluster();
  for (const double oversubscription : {1.0, 4.0, 2.0, 4.0}) {
    c.network.oversubscription = oversubscription;
    for (const int nodes_per_leaf : {2, 4}) {
      c.network.nodes_per_leaf = nodes_per_leaf;
      for (const workloads::Workload& w : {plan(8, 8, 1), plan(8, 8, 2), plan(4, 16, 1), plan(8, 8, 1)}) {
        const auto seconds = [&] {
          return CommunicationModel(c, w, "ring")
              .price(all_gather(GroupKind::dp_cp, 4e8), ranks(w.parallel.dp, w.parallel.tp))
              .transfer_s();
        };
        double alone = 0;
        std::thread([&] { alone = seconds(); }).join();
        EXPECT_EQ(seconds(), alone) << oversubscription << ' ' << nodes_per_leaf << ' ' << w.parallel.tp << ' ' << w.parallel.pp;
      }
    }
  }
}

TEST(CommunicationPrice, NodesOfOneSupernodeUseItsLinks) {
  topology::ClusterSpec c = cluster();
  c.supernode_gpus = 32;
  c.supernode = {200e9, 1, 4e-6};
  const CommunicationModel model(c, plan(8, 8, 1), "ring");
  EXPECT_DOUBLE_EQ(model.price(all_gather(GroupKind::dp_cp, 4e8), ranks(4, 8)).seconds(), 3 * 4e-6 + 3e8 / 200e9);
  EXPECT_DOUBLE_EQ(model.price(all_gather(GroupKind::tp, 8e8), ranks(8)).seconds(), 7 * 3e-6 + 7e8 / 240e9);
}

// A switch that gives an all-to-all half of its rate takes twice as long inside a domain, also beside a fabric of the nodes' own.
TEST(CommunicationPrice, AnAllToAllIsSlowedOnceOnTwoFabrics) {
  topology::ClusterSpec c = cluster();
  c.intra_kind = topology::IntraNode::full_mesh;
  c.supernode_gpus = 16;
  c.supernode = {200e9, 1, 4e-6};
  const workloads::Communication what{"x", CollectiveKind::all_to_all, GroupKind::dp_cp, 1e9, workloads::Pass::update};
  const auto inside_s = [&](const char* algorithm, int gpus) {
    const CallPrice price = CommunicationModel(c, plan(1, gpus, 1), algorithm).price(what, ranks(gpus));
    return price.intra_bytes / price.intra_bytes_per_s;
  };
  for (const char* algorithm : {"ring", "hierarchical"}) {
    for (const int gpus : {16, 64}) {
      c.supernode.exchange_share = 1;
      const double full_s = inside_s(algorithm, gpus);
      c.supernode.exchange_share = 0.5;
      EXPECT_DOUBLE_EQ(inside_s(algorithm, gpus), 2 * full_s) << algorithm << gpus;
    }
  }
}

// Inside a domain a library's all-to-all has a latency of its own, once; other calls, and those between domains, do not.
TEST(CommunicationPrice, AnAllToAllWaitsOnceInsideADomain) {
  topology::ClusterSpec c = cluster();
  const auto price_s = [&](CollectiveKind kind, int gpus) {
    const workloads::Communication what{"x", kind, GroupKind::dp_cp, 1e6, workloads::Pass::update};
    return CommunicationModel(c, plan(1, gpus, 1), "auto").price(what, ranks(gpus)).seconds();
  };
  const double before_s = price_s(CollectiveKind::all_to_all, 8), gather_s = price_s(CollectiveKind::all_gather, 8);
  const double far_s = price_s(CollectiveKind::all_to_all, 64);
  c.intra.exchange_latency_s = c.intra.latency_s + 12e-6;
  EXPECT_NEAR(price_s(CollectiveKind::all_to_all, 8), before_s + 12e-6, 1e-12);
  EXPECT_EQ(price_s(CollectiveKind::all_gather, 8), gather_s);
  EXPECT_EQ(price_s(CollectiveKind::all_to_all, 64), far_s);
}

// NCCL's choice: the tree wins where alpha counts, the ring where bytes do: 2 S / 8 through a NIC against 2 (63/64) S / 8.
TEST(CommunicationPrice, AutoTakesTheFasterOfRingAndTree) {
  const CommunicationModel model(cluster(), plan(1, 64, 1), "auto");
  const auto all_reduce = [](double bytes) {
    return workloads::Communication{"x", CollectiveKind::all_reduce, GroupKind::dp_cp, bytes, workloads::Pass::update};
  };
  EXPECT_EQ(model.price(all_reduce(1024), ranks(64)).algorithm, "tree");
  EXPECT_EQ(model.price(all_reduce(1e11), ranks(64)).algorithm, "ring");
}

// Of what the library has and the fabric is fit for: direct exchanges but an all-to-all need a mesh, two levels need two levels, NVLS a
// switch that reduces.
TEST(CommunicationPrice, AutoTakesTheFastestThatFits) {
  const std::vector<std::string> library{"ring", "tree", "hierarchical", "direct", "nvls"};
  const auto chosen = [&](const topology::ClusterSpec& c, CollectiveKind kind, double bytes, int gpus) {
    const workloads::Communication what{"x", kind, GroupKind::dp_cp, bytes, workloads::Pass::update};
    return CommunicationModel(c, plan(1, gpus, 1), "auto", library).price(what, ranks(gpus)).algorithm;
  };
  EXPECT_EQ(chosen(cluster(), CollectiveKind::all_gather, 1e9, 8), "ring");
  EXPECT_EQ(chosen(cluster(), CollectiveKind::all_gather, 1e6, 64), "hierarchical");
  topology::ClusterSpec mesh = cluster();
  mesh.intra_kind = topology::IntraNode::full_mesh;
  EXPECT_EQ(chosen(mesh, CollectiveKind::all_reduce, 1e9, 8), "direct");
  topology::ClusterSpec nvls = cluster();
  nvls.in_switch = nvls.intra;
  EXPECT_EQ(chosen(nvls, CollectiveKind::all_reduce, 1e9, 8), "nvls");
  EXPECT_EQ(chosen(nvls, CollectiveKind::all_to_all, 1e9, 8), "direct");
}

// SHARP halves what a ring carries through the NICs: 1/8 S instead of 2 (7/8) S/8, once the network's switches reduce.
TEST(CommunicationPrice, AutoLetsTheNetworkReduce) {
  topology::ClusterSpec sharp = cluster();
  const auto chosen = [&] {
    const workloads::Communication what{"x", CollectiveKind::all_reduce, GroupKind::dp_cp, 1e9, workloads::Pass::update};
    return CommunicationModel(sharp, plan(1, 64, 1), "auto", {"ring", "collnet", "nvls-sharp"}).price(what, ranks(64)).algorithm;
  };
  EXPECT_EQ(chosen(), "ring");
  sharp.network.in_switch = sharp.nic;
  EXPECT_EQ(chosen(), "collnet");
  sharp.in_switch = sharp.intra;
  EXPECT_EQ(chosen(), "nvls-sharp");
}

// Every member of a mesh of 8 has a link of 240 GB/s to each of the 7 others: S/8 over each, twice for an all-reduce.
TEST(CommunicationPrice, AMeshUsesEveryLink) {
  topology::ClusterSpec mesh = cluster();
  mesh.intra_kind = topology::IntraNode::full_mesh;
  const CommunicationModel model(mesh, plan(8, 1, 1), "direct");
  EXPECT_DOUBLE_EQ(model.price(all_gather(GroupKind::tp, 8e8), ranks(8)).seconds(), 3e-6 + 1e8 / 240e9);
  EXPECT_DOUBLE_EQ(model.price(all_gather(GroupKind::tp, 4e8), ranks(4)).seconds(), 3e-6 + 1e8 / 240e9);
}

TEST(CommunicationPrice, AGroupOfOneIsFree) {
  EXPECT_EQ(CommunicationModel(cluster(), plan(1, 1, 1), "auto").price(all_gather(GroupKind::tp, 1e9), ranks(1)).seconds(), 0);
}

TEST(CommunicationPrice, AMessageBetweenStages) {
  const CommunicationModel model(cluster(), plan(8, 1, 2), "auto");
  const workloads::Communication message{"x", CollectiveKind::send_recv, GroupKind::pp, 1e8, workloads::Pass::forward};
  EXPECT_DOUBLE_EQ(model.price(message, std::vector{0, 8}).seconds(), 6e-6 + 1e8 / (25e9 * 0.9));
  EXPECT_DOUBLE_EQ(model.price(message, std::vector{0, 4}).seconds(), 3e-6 + 1e8 / 240e9);
}

}  // namespace
}  // namespace rehearse::sim
