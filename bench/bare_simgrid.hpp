// Bare SimGrid, which ours is measured against: chains of operations, each launched from the completion of the one before. One simulation
// per process: run it in a child (sim/engine/child_process.hpp).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <simgrid/kernel/Timer.hpp>
#include <simgrid/s4u.hpp>
#include <string>
#include <utility>
#include <vector>

#include "bench/seconds.hpp"

namespace rehearse {

class BareSimGrid {
 public:
  enum class Kind { compute, flow, timer, end };
  struct Operation {
    Kind kind = Kind::end;
    double seconds = 0;  // that it takes alone
  };
  using Next = std::function<Operation(std::size_t chain)>;  // what a chain does now
  static constexpr double bytes_per_s = 1e9;                 // of each link

  // Flows go over two links of the chain's own, or over one that all chains share.
  BareSimGrid(int chains, bool shared, Next next) : next_(std::move(next)), running_(static_cast<std::size_t>(chains)) {
    int argc = 1;
    char name[] = "bare";
    char* argv[] = {name, nullptr};
    xbt_log_control_set("root.thresh:critical");
    engine_ = std::make_unique<simgrid::s4u::Engine>(&argc, argv);
    for (const char* setting : {"network/model:CM02", "network/crosstraffic:0", "network/TCP-gamma:0"})
      simgrid::s4u::Engine::set_config(setting);
    add_hosts(shared);
  }

  // Processor seconds of the loop.
  double run() {
    simgrid::s4u::Activity::on_completion_cb([this](const simgrid::s4u::Activity& activity) {
      const auto chain = reinterpret_cast<std::uintptr_t>(activity.get_data<void>()) - 1;
      graveyard_.push_back(std::move(running_[chain]));
      go_on(chain);
    });
    simgrid::s4u::Engine::on_time_advance_cb([this](double) { graveyard_.clear(); });
    for (std::size_t i = 0; i < hosts_.size(); ++i) simgrid::kernel::timer::Timer::set(0, [this, i] { go_on(i); });
    return processor_seconds_of([&] { engine_->run(); });
  }

 private:
  using Routed = simgrid::s4u::LinkInRoute;

  void add_hosts(bool shared) {
    simgrid::s4u::NetZone* zone = simgrid::s4u::create_full_zone("bare");
    const auto link = [&](const std::string& called) { return zone->create_link(called, bytes_per_s)->set_latency(0)->seal(); };
    const simgrid::s4u::Link* common = link("common");
    for (std::size_t i = 0; i < running_.size(); ++i) {
      const std::string number = std::to_string(i);
      simgrid::s4u::Host* host = hosts_.emplace_back(zone->create_host("h" + number, 1.0)->seal());
      std::vector<Routed> route{Routed(common)};
      if (!shared) route = {Routed(link("o" + number)), Routed(link("i" + number))};
      zone->add_route(host->get_netpoint(), host->get_netpoint(), nullptr, nullptr, route, false);
    }
    zone->seal();
  }

  void go_on(std::size_t chain) {
    const Operation now = next_(chain);
    if (now.kind == Kind::end) return;
    if (now.kind == Kind::timer) {
      simgrid::kernel::timer::Timer::set(simgrid::s4u::Engine::get_clock() + now.seconds, [this, chain] { go_on(chain); });
      return;
    }
    simgrid::s4u::Host* host = hosts_[chain];
    simgrid::s4u::ActivityPtr activity;
    if (now.kind == Kind::compute) {
      activity = simgrid::s4u::Exec::init()->set_flops_amount(now.seconds)->set_host(host);
    } else {
      activity = simgrid::s4u::Comm::sendto_init(host, host)->set_payload_size(static_cast<std::uint64_t>(now.seconds * bytes_per_s));
    }
    activity->set_data(reinterpret_cast<void*>(chain + 1));
    running_[chain] = activity;
    activity->vetoable_start();
  }

  Next next_;
  std::unique_ptr<simgrid::s4u::Engine> engine_;
  std::vector<simgrid::s4u::Host*> hosts_;
  std::vector<simgrid::s4u::ActivityPtr> running_, graveyard_;
};

}  // namespace rehearse
