// One collective alone on an otherwise idle cluster takes its closed form, in every fidelity that promises it.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "jobs.hpp"
#include "sim/engine/child_process.hpp"
#include "sim/engine/executor.hpp"
#include "topology/flow_hash.hpp"

namespace rehearse::tests {
namespace {

using workloads::CollectiveKind;

// A graph of one collective over the first n ranks, all simulated.
double alone_s(const sim::Job& job, CollectiveKind kind, int n, double bytes) {
  std::vector<workloads::SimulatedRank> ranks;
  std::vector<int> members;
  workloads::Folding folding;
  std::vector<std::uint32_t> folded;
  for (int i = 0; i < n; ++i) {
    ranks.push_back({i, 0, 1});
    members.push_back(i);
    folding.class_of.push_back(i);
    folded.push_back(i);
  }
  folding.ranks = ranks;
  workloads::StepGraphBuilder builder(ranks);
  const std::uint32_t group = builder.add_group(workloads::GroupKind::dp_cp, members, folded);
  const std::uint32_t call = builder.add_call({"x", kind, workloads::GroupKind::dp_cp, bytes, workloads::Pass::update}, 1, group);
  for (int i = 0; i < n; ++i) {
    workloads::Op op{workloads::OpKind::collective, workloads::Stream::dp, workloads::Phase::dp};
    op.rank = static_cast<std::uint32_t>(i);
    op.item = call;
    builder.add(op, "x");
  }
  const workloads::StepGraph graph = std::move(builder).freeze();
  return sim::run_in_child([&] {
           const sim::CommunicationModel model(job.system.cluster, job.workload, job.system.simulation.algorithm,
                                               job.system.software.collectives, job.system.simulation.collectives == sim::Fidelity::step);
           const sim::Prices prices = sim::price_graph(job, model, graph);
           sim::Machine machine;
           std::vector<sim::HostIndex> hosts;
           hosts.reserve(static_cast<std::size_t>(n));
           for (int i = 0; i < n; ++i) hosts.push_back(machine.add_host(sim::contention_speeds(job.system.gpu)));
           sim::CommPlanner planner(job, model, graph, folding, prices, machine, hosts);
           const sim::CommPlans plans = planner.plans();
           machine.seal();
           return std::vector<double>{sim::execute({job, graph, prices, plans, planner.port_links(), hosts}, machine, {}).front().step_s};
         })
      .front();
}

double closed_form_s(const sim::Job& job, CollectiveKind kind, int n, double bytes) {
  std::vector<int> members(static_cast<std::size_t>(n));
  std::iota(members.begin(), members.end(), 0);
  return sim::CommunicationModel(job.system.cluster, job.workload, job.system.simulation.algorithm, job.system.software.collectives,
                                 job.system.simulation.collectives == sim::Fidelity::step)
      .price({"x", kind, workloads::GroupKind::dp_cp, bytes, workloads::Pass::update}, members)
      .seconds();
}

// A node of 64, so that every group is in one scale-up domain; then nodes of one GPU, so that every hop crosses the network.
sim::Job flat_job(bool one_node) {
  sim::Job job = small_job(64, "{tp: 1, pp: 1, dp: 64}", "{global: 64, micro: 1, sequence: 1024}");
  job.system.simulation.all_ranks = true;
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

// A full mesh of 16: rings that share no link, direct exchanges over all links, and what uses one link after the other.
TEST(CollectiveAloneInAMesh, TakesItsClosedForm) {
  using enum CollectiveKind;
  sim::Job job = small_job(16, "{tp: 1, pp: 1, dp: 16}", "{global: 16, micro: 1, sequence: 1024}");
  job.system.simulation.all_ranks = true;
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
  sim::Job job = small_job(64, "{tp: 1, pp: 1, dp: 64}", "{global: 64, micro: 1, sequence: 1024}");
  job.system.simulation.all_ranks = true;
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
  sim::Job job = small_job(64, "{tp: 1, pp: 1, dp: 64}", "{global: 64, micro: 1, sequence: 1024}");
  job.system.simulation.all_ranks = true;
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
  sim::Job job = small_job(64, "{tp: 1, pp: 1, dp: 64}", "{global: 64, micro: 1, sequence: 1024}");
  job.system.simulation.all_ranks = true;
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

// Every hop of every round laid over the cables of a torus, which take as long as the busiest.
double busiest_cable_s(const std::vector<int>& dims, const std::vector<double>& bytes_per_s, CollectiveKind kind, double bytes) {
  workloads::GroupShape group;
  group.torus = dims;
  for (const int size : dims) group.size *= size;
  for (int member = 0; member < group.size; ++member) group.domain.push_back(member);
  std::map<std::pair<int, int>, double> cables;
  for (const workloads::Round& round : workloads::CollectiveRegistry::get("torus-rings").rounds(kind, group, bytes, 0)) {
    for (const workloads::Transfer& t : round.transfers) cables[{t.from, t.to}] += t.bytes;
  }
  double longest = 0;
  for (const auto& [ends, sum] : cables) {
    int stride = group.size;
    for (std::size_t axis = 0; axis < dims.size(); ++axis) {
      stride /= dims[axis];
      if (ends.first / stride % dims[axis] != ends.second / stride % dims[axis]) longest = std::max(longest, sum / bytes_per_s[axis]);
    }
  }
  return longest;
}

// A torus of nodes of one chip: as long as the busiest cable takes; in a cube every cable is as busy, 1/6 of 2(n-1)/n S.
TEST(CollectiveAloneOnATorus, TakesItsClosedForm) {
  for (const auto& dims : std::vector<std::vector<int>>{{64}, {8, 8}, {4, 4, 4}, {2, 8, 4}, {4, 16}}) {
    sim::Job job = small_job(64, "{tp: 1, pp: 1, dp: 64}", "{global: 64, micro: 1, sequence: 1024}");
    job.system.simulation.all_ranks = true;
    job.system.simulation.algorithm = "torus-rings";
    topology::ClusterSpec& cluster = job.system.cluster;
    cluster.gpus_per_node = cluster.nics_per_node = 1;
    cluster.nodes = 64;
    cluster.nic = {600e9, 1, 1e-6};
    cluster.network = {};
    cluster.network.kind = topology::Network::torus;
    cluster.network.dims = dims;
    cluster.network.wrap.assign(dims.size(), true);
    std::vector<double> rates;
    int hops = 0;
    for (std::size_t axis = 0; axis < dims.size(); ++axis) {
      rates.push_back(axis == 1 ? 40e9 : 50e9);
      cluster.network.axes.push_back({rates.back(), 1, 0});
      hops += dims[axis] - 1;
    }
    for (const auto kind : {CollectiveKind::all_reduce, CollectiveKind::all_gather, CollectiveKind::reduce_scatter}) {
      const int laps = kind == CollectiveKind::all_reduce ? 2 : 1;
      const double expected = laps * hops * 1e-6 + busiest_cable_s(dims, rates, kind, 1e9);
      EXPECT_NEAR(closed_form_s(job, kind, 64, 1e9), expected, 1e-9 * expected) << dims.size() << " axes";
      if (dims == std::vector{4, 4, 4}) {
        EXPECT_NEAR(expected, laps * (9e-6 + 63.0 / 64 * 1e9 / 6 / 40e9), 1e-9 * expected);
      }
      for (const auto fidelity : {sim::Fidelity::ring, sim::Fidelity::step}) {
        job.system.simulation.collectives = fidelity;
        EXPECT_NEAR(alone_s(job, kind, 64, 1e9), expected, 1e-6 * expected) << dims.size() << " axes";
      }
    }
    // One ring through all nodes goes at the pace of the slowest cable.
    job.system.simulation.algorithm = "ring";
    job.system.simulation.collectives = sim::Fidelity::ring;
    const double ring_s = closed_form_s(job, CollectiveKind::all_gather, 64, 1e9);
    EXPECT_NEAR(ring_s, 63e-6 + 63.0 / 64 * 1e9 / *std::ranges::min_element(rates), 1e-9 * ring_s);
    EXPECT_NEAR(alone_s(job, CollectiveKind::all_gather, 64, 1e9), ring_s, 1e-6 * ring_s) << dims.size() << " axes";
  }
}

// Seconds of the busiest link of every round, one round after another where they follow one another, of a collective of all ranks.
double busiest_link_s(const sim::Job& job, CollectiveKind kind, double bytes) {
  const sim::CommunicationModel model(job.system.cluster, job.workload, "auto");
  const workloads::Collective& algorithm = workloads::CollectiveRegistry::get(job.system.simulation.algorithm);
  std::vector<int> members(static_cast<std::size_t>(job.system.gpus));
  std::iota(members.begin(), members.end(), 0);
  const workloads::GroupShape group = model.shape(members);
  const bool follow = algorithm.pace(kind, group) == workloads::Pace::rounds;
  topology::Fabric fabric = topology::Fabric::build(job.system.cluster, job.system.gpus);
  std::map<std::pair<std::size_t, topology::LinkId>, double> seconds;
  std::size_t number = 0;
  for (const workloads::Round& round : algorithm.rounds(kind, group, bytes, 0)) {
    for (const workloads::Transfer& t : round.transfers) {
      topology::Route route;
      const std::uint64_t hash = (static_cast<std::uint64_t>(t.from) << 20U) ^ static_cast<std::uint64_t>(t.to);
      fabric.route(t.from, t.to, hash, route, t.rail_of < 0 ? -1 : fabric.rail_of(t.rail_of));
      for (const topology::LinkId link : route.links) seconds[{number, link}] += t.bytes / fabric.links()[link].bandwidth_bytes_per_s;
    }
    number += follow ? 1 : 0;
  }
  std::vector<double> longest(number + 1);
  for (const auto& [key, s] : seconds) longest[key.first] = std::max(longest[key.first], s);
  return std::accumulate(longest.begin(), longest.end(), 0.0);
}

struct Cabled {
  const char* name;
  topology::NetworkSpec network;
};

std::vector<Cabled> networks_of_cables(int nodes) {
  const auto of_kind = [](topology::Network kind) {
    topology::NetworkSpec network;
    network.kind = kind;
    network.trunk = {40e9, 1, 0};
    return network;
  };
  topology::NetworkSpec torus = of_kind(topology::Network::torus), dragonfly = of_kind(topology::Network::dragonfly),
                        graph = of_kind(topology::Network::graph);
  torus.dims = {nodes / 4, 4};
  torus.wrap = {true, false};
  torus.axes = {{50e9, 1, 0}, {40e9, 1, 0}};
  dragonfly.groups = 4;
  dragonfly.routers_per_group = 2;
  dragonfly.nodes_per_router = nodes / 8;
  graph.graph.switches = {"east", "west", "north"};
  graph.graph.trunks = {{"east", "west", {50e9, 1, 0}, 2}, {"west", "north", {50e9, 1, 0}, 1}};
  for (int node = 0; node < nodes; ++node) graph.graph.attach.push_back({graph.graph.switches[static_cast<std::size_t>(node % 3)]});
  return {{"torus", torus}, {"dragonfly", dragonfly}, {"graph", graph}};
}

// Nodes of one GPU with wide ports: by formula and as flows as long as its cables take.
TEST(CollectiveAloneOnCables, TakesAsLongAsTheBusiest) {
  using enum CollectiveKind;
  sim::Job job = small_job(16, "{tp: 1, pp: 1, dp: 16}", "{global: 16, micro: 1, sequence: 1024}");
  job.system.simulation.all_ranks = true;
  topology::ClusterSpec& cluster = job.system.cluster;
  cluster.gpus_per_node = cluster.nics_per_node = 1;
  cluster.nodes = 16;
  cluster.nic = {600e9, 1, 0};
  const std::vector<std::pair<const char*, std::vector<CollectiveKind>>> all{{"ring", {all_reduce, all_gather, reduce_scatter, all_to_all}},
                                                                             {"tree", {all_reduce}},
                                                                             {"halving-doubling", {all_reduce, all_gather, reduce_scatter}},
                                                                             {"binomial", {all_reduce}},
                                                                             {"direct", {all_to_all}}};
  for (const auto& [name, network] : networks_of_cables(16)) {
    cluster.network = network;
    for (const auto& [algorithm, kinds] : all) {
      job.system.simulation.algorithm = algorithm;
      job.system.simulation.collectives = sim::Fidelity::ring;
      for (const CollectiveKind kind : kinds) {
        const double expected = busiest_link_s(job, kind, 1e9);
        EXPECT_NEAR(closed_form_s(job, kind, 16, 1e9), expected, 1e-9 * expected) << algorithm << " " << name_of(kind) << " on a " << name;
        EXPECT_NEAR(alone_s(job, kind, 16, 1e9), expected, 1e-6 * expected) << algorithm << " " << name_of(kind) << " on a " << name;
      }
    }
  }
}

// PCIe boxes of 8 whose GPUs reach each other and their NICs over one port: what leaves the box passes it too. V through each port, where a
// switch of its own would carry (g-1)/g V.
TEST(CollectiveAloneInPcieBoxes, TakesItsClosedForm) {
  using enum CollectiveKind;
  sim::Job job = small_job(32, "{tp: 1, pp: 1, dp: 32}", "{global: 32, micro: 1, sequence: 1024}");
  job.system.simulation.all_ranks = true;
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
  sim::Job job = small_job(64, "{tp: 1, pp: 1, dp: 64}", "{global: 64, micro: 1, sequence: 1024}");
  job.system.simulation.all_ranks = true;
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
  sim::Job job = small_job(64, "{tp: 1, pp: 1, dp: 64}", "{global: 64, micro: 1, sequence: 1024}");
  job.system.simulation.all_ranks = true;
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
