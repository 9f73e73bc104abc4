// The machine's own events and fair shares against bare SimGrid, as ratios of operations per second in the same run: operations that share
// nothing, and flows that all share. SimGrid's runs in a child process (one simulation per process).
#include <benchmark/benchmark.h>

#include "bench/bare_simgrid.hpp"
#include "sim/engine/child_process.hpp"
#include "sim/engine/machine.hpp"

namespace rehearse {
namespace {

// So many chains of operations, one after another. Not shared: an execution, a flow over two links of the chain's own, a timer, and again.
// Shared: flows over one link that all chains use.
struct Load {
  int chains = 0, operations = 0;
  bool shared = false;
};
// Chains do not end at the same instants.
double size_of(std::size_t chain) { return 1e-3 * (1 + static_cast<double>(chain) * 1e-3); }
constexpr double bytes_per_s = BareSimGrid::bytes_per_s, delay_s = 1e-6;

class OwnLoop {
 public:
  explicit OwnLoop(const Load& load) : load_(load), done_(static_cast<std::size_t>(load.chains)) {
    const std::array full_speed{1.0};
    const sim::LinkIndex common = machine_.add_link(bytes_per_s);
    for (int i = 0; i < load.chains; ++i) {
      static_cast<void>(machine_.add_host(full_speed));
      const std::array own{machine_.add_link(bytes_per_s), machine_.add_link(bytes_per_s)};
      links_.push_back(load.shared ? std::vector{common} : std::vector<sim::LinkIndex>{own.begin(), own.end()});
    }
    machine_.seal();
  }

  double run() {
    for (sim::Token chain = 0; chain < done_.size(); ++chain) machine_.after(0, chain);
    return processor_seconds_of([&] { machine_.run([this](sim::Token chain) { next(chain); }); });
  }

 private:
  void next(sim::Token chain) {
    const int turn = done_[chain]++;
    if (turn == load_.operations) return;
    const auto host = static_cast<sim::HostIndex>(chain);
    if (load_.shared || turn % 3 == 1) return machine_.transfer(host, host, links_[chain], size_of(chain) * bytes_per_s, chain);
    turn % 3 == 0 ? machine_.compute(host, size_of(chain), chain) : machine_.after(delay_s, chain);
  }

  Load load_;
  sim::Machine machine_;
  std::vector<std::vector<sim::LinkIndex>> links_;
  std::vector<int> done_;
};

double bare_run_s(const Load& load) {
  using Kind = BareSimGrid::Kind;
  std::vector<int> done(static_cast<std::size_t>(load.chains));
  const auto next = [&](std::size_t chain) -> BareSimGrid::Operation {
    const int turn = done[chain]++;
    if (turn == load.operations) return {};
    if (load.shared || turn % 3 == 1) return {Kind::flow, size_of(chain)};
    return turn % 3 == 0 ? BareSimGrid::Operation{Kind::compute, size_of(chain)} : BareSimGrid::Operation{Kind::timer, delay_s};
  };
  return BareSimGrid(load.chains, load.shared, next).run();
}

void measure(benchmark::State& state, bool shared) {
  const Load load{static_cast<int>(state.range(0)), static_cast<int>(state.range(1)), shared};
  double own_s = 0, bare_s = 0;
  for (auto _ : state) {
    own_s = sim::run_in_child([&] { return std::vector{OwnLoop(load).run()}; }).front();
    bare_s = sim::run_in_child([&] { return std::vector{bare_run_s(load)}; }).front();
    state.SetIterationTime(own_s);
  }
  const double operations = static_cast<double>(load.chains) * load.operations;
  state.counters["own_per_s"] = operations / own_s;
  state.counters["bare_per_s"] = operations / bare_s;
  state.counters["ratio"] = bare_s / own_s;
}

void shares_nothing(benchmark::State& state) { measure(state, false); }
void all_share(benchmark::State& state) { measure(state, true); }
BENCHMARK(shares_nothing)->Args({16, 6000})->Args({1024, 60})->UseManualTime()->Unit(benchmark::kMillisecond)->Iterations(3);
BENCHMARK(all_share)->Args({16, 1000})->Args({256, 20})->UseManualTime()->Unit(benchmark::kMillisecond)->Iterations(3);

}  // namespace
}  // namespace rehearse

BENCHMARK_MAIN();
