// The only file that touches SimGrid, in a module that the program loads when it needs it (sim/engine/load_simgrid.cpp).
#include <fmt/format.h>
#include <xbt/log.h>

#include <cmath>
#include <csignal>
#include <simgrid/kernel/Timer.hpp>
#include <simgrid/kernel/resource/Action.hpp>
#include <simgrid/kernel/resource/Model.hpp>
#include <simgrid/kernel/routing/NetPoint.hpp>
#include <simgrid/kernel/routing/NetZoneImpl.hpp>
#include <simgrid/s4u.hpp>
#include <stdexcept>
#include <string>
#include <unordered_map>

#include "sim/engine/machine_impl.hpp"

namespace rehearse::sim {
namespace {

namespace sg4 = simgrid::s4u;

// Payloads are whole numbers in SimGrid; counting 2^-16 bytes keeps the rounding below 1e-9 for messages of 16 kB and more.
constexpr double units_per_byte = 65536;

// Routes are decided by whoever starts a flow: SimGrid asks for the route while the flow starts, and gets the links laid out here.
class FlowZone final : public simgrid::kernel::routing::NetZoneImpl {
 public:
  explicit FlowZone(const std::string& name) : NetZoneImpl(name) {}
  void lay_out(std::span<const LinkIndex> links) {
    next_.clear();
    for (const LinkIndex link : links) next_.push_back(links_[link]);
  }
  // The flow that began last. Flows have no weights in S4U, but their actions have penalties, to which rates are inverse. NetworkModel is
  // not in the installed headers; Model is its first base.
  void weigh_last(double weight) {
    auto* model = reinterpret_cast<simgrid::kernel::resource::Model*>(get_network_model().get());
    model->get_started_action_set()->back().set_sharing_penalty(1 / weight);
  }
  LinkIndex add(sg4::Link* link) {
    links_.push_back(link->get_impl());
    return static_cast<LinkIndex>(links_.size() - 1);
  }

 private:
  void get_local_route(const simgrid::kernel::routing::NetPoint* /*src*/, const simgrid::kernel::routing::NetPoint* /*dst*/,
                       simgrid::kernel::routing::Route* into, double* /*latency*/) override {
    into->link_list_.insert(into->link_list_.end(), next_.begin(), next_.end());
  }
  std::vector<simgrid::kernel::resource::StandardLinkImpl*> links_, next_;
};

bool& used() {
  static bool had_one = false;
  return had_one;
}

class SimGridMachine final : public Machine::Impl {
 public:
  SimGridMachine();
  ~SimGridMachine() override;
  SimGridMachine(const SimGridMachine&) = delete;
  SimGridMachine& operator=(const SimGridMachine&) = delete;

  HostIndex add_host(std::span<const double> speeds) override;
  LinkIndex add_link(double bytes_per_s) override;
  void divide(std::span<const AreaIndex> /*area_of_host*/, unsigned /*threads*/) override {}  // none is ever ahead
  [[nodiscard]] std::size_t lanes() const override { return 1; }
  [[nodiscard]] std::size_t lane_of(AreaIndex /*area*/) const override { return 0; }
  void seal() override { zone_->get_iface()->seal(); }
  void compute(HostIndex host, double seconds, Token token) override {
    start(sg4::Exec::init()->set_flops_amount(seconds)->set_host(hosts_[host]), token);
  }
  void transfer(HostIndex from, HostIndex to, std::span<const LinkIndex> links, double bytes, Token token, double weight,
                AreaIndex area) override;
  void after(double delay_s, Token token, AreaIndex /*area*/) override {
    simgrid::kernel::timer::Timer::set(now() + delay_s, [this, token] { (*on_done_)(token); });
  }
  void halt(const std::function<bool(Token)>& chosen) override;
  void set_speed(HostIndex host, std::size_t which) override { hosts_[host]->set_pstate(which); }
  void set_bandwidth(LinkIndex link, double bytes_per_s) override {
    current_[link] = bytes_per_s;
    links_[link]->set_bandwidth(bytes_per_s * units_per_byte);
  }
  [[nodiscard]] double now() const override { return sg4::Engine::get_clock(); }
  [[nodiscard]] double next_s(AreaIndex /*area*/) const override { return now(); }
  [[nodiscard]] double quiet_until_s() const override { return now(); }
  void run(const std::function<void(Token)>& on_done, Ahead* ahead) override;

 private:
  void start(const sg4::ActivityPtr& activity, Token token);
  void completed(const sg4::Activity& activity);

  std::unique_ptr<sg4::Engine> engine_;
  FlowZone* zone_ = nullptr;
  std::vector<sg4::Host*> hosts_;
  std::vector<sg4::Link*> links_;
  std::vector<double> full_, current_;  // [link] bandwidth at creation and now, bytes per second
  struct Running {
    sg4::ActivityPtr activity;
    Token token = 0;
  };
  std::unordered_map<const sg4::Activity*, Running> running_;
  std::vector<sg4::ActivityPtr> graveyard_;  // dropping the last reference inside the completion callback would crash SimGrid
  const std::function<void(Token)>* on_done_ = nullptr;
};

void SimGridMachine::start(const sg4::ActivityPtr& activity, Token token) {
  running_[activity.get()] = {activity, token};
  activity->vetoable_start();
}

void SimGridMachine::completed(const sg4::Activity& activity) {
  const auto it = running_.find(&activity);
  if (it == running_.end()) return;
  const Token token = it->second.token;
  graveyard_.push_back(std::move(it->second.activity));
  running_.erase(it);
  (*on_done_)(token);
}

SimGridMachine::SimGridMachine() {
  if (used()) throw std::logic_error("SimGrid allows one simulation per process; run others in a child process");
  used() = true;
  int argc = 1;
  char name[] = "rehearse";
  char* argv[] = {name, nullptr};
  xbt_log_control_set("root.thresh:critical");
  // SimGrid takes SIGINT for a status report and exits with 1; Ctrl-C stays with the program.
  struct sigaction interrupt {};
  sigaction(SIGINT, nullptr, &interrupt);
  engine_ = std::make_unique<sg4::Engine>(&argc, argv);
  sigaction(SIGINT, &interrupt, nullptr);
  // One transfer takes size / bandwidth exactly: no TCP window, no reverse traffic, no correction factors.
  sg4::Engine::set_config("network/model:CM02");
  sg4::Engine::set_config("network/crosstraffic:0");
  sg4::Engine::set_config("network/TCP-gamma:0");
  sg4::Engine::set_config("surf/precision:1e-14");  // of 1e-9 s by default: a step of many operations would add that up
  zone_ = new FlowZone("fabric");                   // the first zone is the root, which the engine owns
}

// What never ends stays with SimGrid: it cannot take down an activity that is suspended.
SimGridMachine::~SimGridMachine() {
  for (auto& [key, running] : running_) running.activity.detach();
}

HostIndex SimGridMachine::add_host(std::span<const double> speeds) {
  const auto index = static_cast<HostIndex>(hosts_.size());
  hosts_.push_back(zone_->create_host(fmt::format("h{}", index), {speeds.begin(), speeds.end()})->seal());
  return index;
}

LinkIndex SimGridMachine::add_link(double bytes_per_s) {
  sg4::Link* link = zone_->create_link(fmt::format("l{}", links_.size()), std::vector<double>{bytes_per_s * units_per_byte});
  link->set_latency(0);
  link->seal();
  links_.push_back(link);
  full_.push_back(bytes_per_s);
  current_.push_back(bytes_per_s);
  return zone_->add(link);
}

void SimGridMachine::transfer(HostIndex from, HostIndex to, std::span<const LinkIndex> links, double bytes, Token token, double weight,
                              AreaIndex /*area*/) {
  zone_->lay_out(links);
  const auto units = static_cast<std::uint64_t>(std::llround(bytes * units_per_byte));
  // A flow is bound for life to the least bandwidth that its links have when it starts: start it with all of them at full bandwidth.
  const auto slowed = [&](LinkIndex link) { return current_[link] < full_[link]; };
  for (const LinkIndex link : links) {
    if (slowed(link)) links_[link]->set_bandwidth(full_[link] * units_per_byte);
  }
  start(sg4::Comm::sendto_init(hosts_[from], hosts_[to])->set_payload_size(units == 0 ? 1 : units), token);
  if (weight != 1) zone_->weigh_last(weight);
  for (const LinkIndex link : links) {
    if (slowed(link)) links_[link]->set_bandwidth(current_[link] * units_per_byte);
  }
}

void SimGridMachine::halt(const std::function<bool(Token)>& chosen) {
  for (auto& [key, running] : running_) {
    if (chosen(running.token)) running.activity->suspend();
  }
}

void SimGridMachine::run(const std::function<void(Token)>& on_done, Ahead* /*ahead*/) {
  on_done_ = &on_done;
  sg4::Activity::on_completion_cb([this](const sg4::Activity& activity) { completed(activity); });
  sg4::Engine::on_time_advance_cb([this](double) { graveyard_.clear(); });
  engine_->run();
}

}  // namespace
}  // namespace rehearse::sim

rehearse::sim::Machine::Impl* rehearse_simgrid_machine() { return std::make_unique<rehearse::sim::SimGridMachine>().release(); }
