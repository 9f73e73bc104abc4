// Cost of building a fabric and of finding routes, next to the naive way: a breadth-first search over the whole graph for every route.
#include "topology/fabric.hpp"

#include <benchmark/benchmark.h>

#include <boost/graph/breadth_first_search.hpp>
#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <utility>
#include <vector>

namespace {

using namespace rehearse::topology;

// A cluster of the common shape: nodes of 8, eight rails of 400 Gbit/s, leaves of 32 nodes, nothing oversubscribed.
ClusterSpec rails() {
  ClusterSpec cluster;
  cluster.name = "bench";
  cluster.gpus_per_node = 8;
  cluster.intra = {450e9, 0.8, 2e-6};
  cluster.nics_per_node = 8;
  cluster.nic = {50e9, 0.95, 10e-6};
  cluster.pcie_bytes_per_s = 60e9;
  cluster.host = {60e9, 0.9, 10e-6};
  cluster.network.kind = Network::rail_optimised;
  cluster.network.nodes_per_leaf = 32;
  cluster.network.trunk = cluster.nic;
  return cluster;
}

void build(benchmark::State& state) {
  const auto cluster = rails();
  for (auto _ : state) {
    const auto fabric = Fabric::build(cluster, static_cast<int>(state.range(0)));
    benchmark::DoNotOptimize(fabric.links().data());
  }
}
BENCHMARK(build)->Arg(1024)->Arg(16384)->Unit(benchmark::kMillisecond);

// The i-th pair of GPUs, spread over the cluster by two odd strides.
std::pair<int, int> nth_pair(std::uint64_t i, int gpus) {
  const auto n = static_cast<std::uint64_t>(gpus);
  return {static_cast<int>(i * 7919 % n), static_cast<int>((i * 104729 + 12345) % n)};
}

void route(benchmark::State& state) {
  const int gpus = static_cast<int>(state.range(0));
  const auto fabric = Fabric::build(rails(), gpus);
  Route into;
  for (int gpu = 0; gpu < gpus; ++gpu) fabric.route((gpu + gpus / 2) % gpus, gpu, 0, into);  // fills the tables
  std::uint64_t i = 0;
  for (auto _ : state) {
    const auto [from, to] = nth_pair(++i, gpus);
    fabric.route(from, to, i, into);
    benchmark::DoNotOptimize(into.links.data());
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(route)->Arg(1024)->Arg(16384);

using Plain = boost::compressed_sparse_row_graph<boost::directedS>;

void naive_route(benchmark::State& state) {
  const int gpus = static_cast<int>(state.range(0));
  const auto fabric = Fabric::build(rails(), gpus);
  std::vector<std::pair<std::size_t, std::size_t>> ends;
  for (const auto& link : fabric.links()) ends.emplace_back(link.from, link.to);
  const Plain graph(boost::edges_are_unsorted_multi_pass, ends.begin(), ends.end(), fabric.vertex_count());
  const auto index = get(boost::vertex_index, graph);
  std::vector<std::size_t> before(fabric.vertex_count());
  std::uint64_t i = 0;
  for (auto _ : state) {
    const auto [from, to] = nth_pair(++i, gpus);
    const auto record = boost::record_predecessors(boost::make_iterator_property_map(before.begin(), index), boost::on_tree_edge());
    boost::breadth_first_search(graph, static_cast<std::size_t>(from), boost::visitor(boost::make_bfs_visitor(record)));
    std::size_t hops = 0;
    for (auto at = static_cast<std::size_t>(to); at != static_cast<std::size_t>(from); at = before[at]) ++hops;
    benchmark::DoNotOptimize(hops);
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(naive_route)->Arg(1024)->Arg(16384);

void cuts(benchmark::State& state) {
  const auto fabric = Fabric::build(rails(), static_cast<int>(state.range(0)));
  for (auto _ : state) benchmark::DoNotOptimize(fabric.cuts().bisection_bytes_per_s);
}
BENCHMARK(cuts)->Arg(1024)->Arg(16384)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
