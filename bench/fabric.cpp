// Cost of building a fabric and of finding routes, next to the naive way: a breadth-first search over the whole graph for every route.
#include "topology/fabric.hpp"

#include <benchmark/benchmark.h>

#include <boost/graph/breadth_first_search.hpp>
#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <utility>
#include <vector>

#include "bench/seconds.hpp"

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

class Search {
 public:
  explicit Search(const Fabric& fabric) : graph_(plain(fabric)), before_(fabric.vertex_count()) {}

  std::size_t hops(int from, int to) {
    const auto index = get(boost::vertex_index, graph_);
    const auto record = boost::record_predecessors(boost::make_iterator_property_map(before_.begin(), index), boost::on_tree_edge());
    boost::breadth_first_search(graph_, static_cast<std::size_t>(from), boost::visitor(boost::make_bfs_visitor(record)));
    std::size_t hops = 0;
    for (auto at = static_cast<std::size_t>(to); at != static_cast<std::size_t>(from); at = before_[at]) ++hops;
    return hops;
  }

 private:
  using Plain = boost::compressed_sparse_row_graph<boost::directedS>;
  static Plain plain(const Fabric& fabric) {
    std::vector<std::pair<std::size_t, std::size_t>> ends;
    for (const auto& link : fabric.links()) ends.emplace_back(link.from, link.to);
    return {boost::edges_are_unsorted_multi_pass, ends.begin(), ends.end(), fabric.vertex_count()};
  }

  Plain graph_;
  std::vector<std::size_t> before_;
};

void naive_route(benchmark::State& state) {
  const int gpus = static_cast<int>(state.range(0));
  Search search(Fabric::build(rails(), gpus));
  std::uint64_t i = 0;
  for (auto _ : state) {
    const auto [from, to] = nth_pair(++i, gpus);
    benchmark::DoNotOptimize(search.hops(from, to));
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(naive_route)->Arg(1024)->Arg(16384);

// Seconds of a search over those of a route; a thousandth of the pairs are searched.
void routes_against_searches(benchmark::State& state) {
  constexpr int gpus = 1024, searches = 200, routes = 1000 * searches;
  const auto fabric = Fabric::build(rails(), gpus);
  Search search(fabric);
  Route into;
  double routed_s = 0, searched_s = 0;
  for (auto _ : state) {
    routed_s += rehearse::processor_seconds_of([&] {
      for (std::uint64_t i = 0; i < routes; ++i) {
        const auto [from, to] = nth_pair(i, gpus);
        fabric.route(from, to, i, into);
        benchmark::DoNotOptimize(into.links.data());
      }
    });
    searched_s += rehearse::processor_seconds_of([&] {
      for (std::uint64_t i = 0; i < searches; ++i) {
        const auto [from, to] = nth_pair(i, gpus);
        benchmark::DoNotOptimize(search.hops(from, to));
      }
    });
  }
  state.counters["ratio"] = (searched_s / searches) / (routed_s / routes);
}
BENCHMARK(routes_against_searches)->Iterations(1)->Repetitions(5)->Unit(benchmark::kMillisecond);

void cuts(benchmark::State& state) {
  const auto fabric = Fabric::build(rails(), static_cast<int>(state.range(0)));
  for (auto _ : state) benchmark::DoNotOptimize(fabric.cuts().bisection_bytes_per_s);
}
BENCHMARK(cuts)->Arg(1024)->Arg(16384)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
