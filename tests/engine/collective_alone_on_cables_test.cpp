// One collective alone where every hop of it is laid over the cables of a torus, a dragonfly or a graph: as long as the busiest takes.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "sim/cost/communication.hpp"
#include "tests/engine/collective_alone.hpp"
#include "topology/fabric.hpp"

namespace rehearse::tests {
namespace {

using workloads::CollectiveKind;

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
    sim::Job job = job_of_one_group(64);
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
  sim::Job job = job_of_one_group(16);
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

}  // namespace
}  // namespace rehearse::tests
