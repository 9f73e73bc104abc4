// The machine's own events and fair shares against bare SimGrid, as ratios of operations per second in the same run: operations that share
// nothing, and flows that all share. SimGrid's runs in a child process (one simulation per process).
#include <benchmark/benchmark.h>

#include <chrono>
#include <simgrid/kernel/Timer.hpp>
#include <simgrid/s4u.hpp>

#include "sim/engine/child_process.hpp"
#include "sim/engine/machine.hpp"

namespace rehearse {
namespace {

namespace sg4 = simgrid::s4u;
using Clock = std::chrono::steady_clock;

// So many chains of operations, one after another. Not shared: an execution, a flow over two links of the chain's own, a timer, and again.
// Shared: flows over one link that all chains use.
struct Load {
  int chains = 0, operations = 0;
  bool shared = false;
};
// Chains do not end at the same instants.
double size_of(std::size_t chain) { return 1e-3 * (1 + static_cast<double>(chain) * 1e-3); }
constexpr double bytes_per_s = 1e9, delay_s = 1e-6;

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
    const auto start = Clock::now();
    machine_.run([this](sim::Token chain) { next(chain); });
    return std::chrono::duration<double>(Clock::now() - start).count();
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

class BareLoop {
 public:
  explicit BareLoop(const Load& load) : load_(load), done_(static_cast<std::size_t>(load.chains)), running_(done_.size()) {
    int argc = 1;
    char name[] = "bare";
    char* argv[] = {name, nullptr};
    xbt_log_control_set("root.thresh:critical");
    engine_ = std::make_unique<sg4::Engine>(&argc, argv);
    for (const char* setting : {"network/model:CM02", "network/crosstraffic:0", "network/TCP-gamma:0"}) sg4::Engine::set_config(setting);
    sg4::NetZone* zone = sg4::create_full_zone("bare");
    const auto link = [&](const std::string& called) { return zone->create_link(called, bytes_per_s)->set_latency(0)->seal(); };
    const sg4::Link* common = link("common");
    for (int i = 0; i < load.chains; ++i) {
      const std::string number = std::to_string(i);
      sg4::Host* host = hosts_.emplace_back(zone->create_host("h" + number, 1.0)->seal());
      std::vector<sg4::LinkInRoute> route{sg4::LinkInRoute(common)};
      if (!load.shared) route = {sg4::LinkInRoute(link("o" + number)), sg4::LinkInRoute(link("i" + number))};
      zone->add_route(host->get_netpoint(), host->get_netpoint(), nullptr, nullptr, route, false);
    }
    zone->seal();
  }

  double run() {
    sg4::Activity::on_completion_cb([this](const sg4::Activity& activity) {
      const auto chain = reinterpret_cast<std::uintptr_t>(activity.get_data<void>()) - 1;
      graveyard_.push_back(std::move(running_[chain]));
      next(chain);
    });
    sg4::Engine::on_time_advance_cb([this](double) { graveyard_.clear(); });
    for (std::size_t i = 0; i < hosts_.size(); ++i) simgrid::kernel::timer::Timer::set(0, [this, i] { next(i); });
    const auto start = Clock::now();
    engine_->run();
    return std::chrono::duration<double>(Clock::now() - start).count();
  }

 private:
  void next(std::size_t chain) {
    const int turn = done_[chain]++;
    if (turn == load_.operations) return;
    if (!load_.shared && turn % 3 == 2) {
      simgrid::kernel::timer::Timer::set(sg4::Engine::get_clock() + delay_s, [this, chain] { next(chain); });
      return;
    }
    sg4::ActivityPtr activity;
    if (load_.shared || turn % 3 == 1) {
      const auto bytes = static_cast<std::uint64_t>(size_of(chain) * bytes_per_s);
      activity = sg4::Comm::sendto_init(hosts_[chain], hosts_[chain])->set_payload_size(bytes);
    } else {
      activity = sg4::Exec::init()->set_flops_amount(size_of(chain))->set_host(hosts_[chain]);
    }
    activity->set_data(reinterpret_cast<void*>(chain + 1));
    running_[chain] = activity;
    activity->vetoable_start();
  }

  Load load_;
  std::vector<int> done_;
  std::unique_ptr<sg4::Engine> engine_;
  std::vector<sg4::Host*> hosts_;
  std::vector<sg4::ActivityPtr> running_, graveyard_;
};

void measure(benchmark::State& state, bool shared) {
  const Load load{static_cast<int>(state.range(0)), static_cast<int>(state.range(1)), shared};
  double own_s = 0, bare_s = 0;
  for (auto _ : state) {
    own_s = sim::run_in_child([&] { return std::vector{OwnLoop(load).run()}; }).front();
    bare_s = sim::run_in_child([&] { return std::vector{BareLoop(load).run()}; }).front();
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
