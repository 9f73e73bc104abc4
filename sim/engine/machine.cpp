#include "sim/engine/machine.hpp"

#include <fmt/format.h>
#include <xbt/log.h>
#include <csignal>
#include <simgrid/kernel/Timer.hpp>
#include <simgrid/kernel/routing/NetPoint.hpp>
#include <simgrid/kernel/routing/NetZoneImpl.hpp>
#include <simgrid/s4u.hpp>
#include <stdexcept>
#include <string>
#include <unordered_map>

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

}  // namespace

struct Machine::Impl {
  std::unique_ptr<sg4::Engine> engine;
  FlowZone* zone = nullptr;
  std::vector<sg4::Host*> hosts;
  std::vector<sg4::Link*> links;
  std::vector<double> full, current;  // [link] bandwidth at creation and now, bytes per second
  struct Running {
    sg4::ActivityPtr activity;
    Token token = 0;
  };
  std::unordered_map<const sg4::Activity*, Running> running;
  std::vector<sg4::ActivityPtr> graveyard;  // dropping the last reference inside the completion callback would crash SimGrid
  const std::function<void(Token)>* on_done = nullptr;

  void start(const sg4::ActivityPtr& activity, Token token) {
    running[activity.get()] = {activity, token};
    activity->vetoable_start();
  }

  void completed(const sg4::Activity& activity) {
    const auto it = running.find(&activity);
    if (it == running.end()) return;
    const Token token = it->second.token;
    graveyard.push_back(std::move(it->second.activity));
    running.erase(it);
    (*on_done)(token);
  }
};

Machine::Machine() : impl_(std::make_unique<Impl>()) {
  if (used()) throw std::logic_error("SimGrid allows one simulation per process; run others in a child process");
  used() = true;
  int argc = 1;
  char name[] = "rehearse";
  char* argv[] = {name, nullptr};
  xbt_log_control_set("root.thresh:critical");
  // SimGrid takes SIGINT for a status report and exits with 1; Ctrl-C stays with the program.
  struct sigaction interrupt {};
  sigaction(SIGINT, nullptr, &interrupt);
  impl_->engine = std::make_unique<sg4::Engine>(&argc, argv);
  sigaction(SIGINT, &interrupt, nullptr);
  // One transfer takes size / bandwidth exactly: no TCP window, no reverse traffic, no correction factors.
  sg4::Engine::set_config("network/model:CM02");
  sg4::Engine::set_config("network/crosstraffic:0");
  sg4::Engine::set_config("network/TCP-gamma:0");
  impl_->zone = new FlowZone("fabric");  // the first zone is the root, which the engine owns
}

// What never ends stays with SimGrid: it cannot take down an activity that is suspended.
Machine::~Machine() {
  for (auto& [key, running] : impl_->running) running.activity.detach();
}

HostIndex Machine::add_host(std::span<const double> speeds) {
  const auto index = static_cast<HostIndex>(impl_->hosts.size());
  impl_->hosts.push_back(impl_->zone->create_host(fmt::format("h{}", index), {speeds.begin(), speeds.end()})->seal());
  return index;
}

LinkIndex Machine::add_link(double bytes_per_s) {
  const std::string name = fmt::format("l{}", impl_->links.size());
  sg4::Link* link = impl_->zone->create_link(name, std::vector<double>{bytes_per_s * units_per_byte});
  link->set_latency(0);
  link->seal();
  impl_->links.push_back(link);
  impl_->full.push_back(bytes_per_s);
  impl_->current.push_back(bytes_per_s);
  return impl_->zone->add(link);
}

void Machine::seal() { impl_->zone->get_iface()->seal(); }

void Machine::compute(HostIndex host, double seconds, Token token) {
  impl_->start(sg4::Exec::init()->set_flops_amount(seconds)->set_host(impl_->hosts[host]), token);
}

void Machine::transfer(HostIndex from, HostIndex to, std::span<const LinkIndex> links, double bytes, Token token) {
  impl_->zone->lay_out(links);
  const auto units = static_cast<std::uint64_t>(bytes * units_per_byte + 0.5);
  // A flow is bound for life to the least bandwidth that its links have when it starts: start it with all of them at full bandwidth.
  const auto slowed = [&](LinkIndex link) { return impl_->current[link] < impl_->full[link]; };
  for (const LinkIndex link : links) {
    if (slowed(link)) impl_->links[link]->set_bandwidth(impl_->full[link] * units_per_byte);
  }
  impl_->start(sg4::Comm::sendto_init(impl_->hosts[from], impl_->hosts[to])->set_payload_size(units == 0 ? 1 : units), token);
  for (const LinkIndex link : links) {
    if (slowed(link)) impl_->links[link]->set_bandwidth(impl_->current[link] * units_per_byte);
  }
}

void Machine::after(double delay_s, Token token) {
  simgrid::kernel::timer::Timer::set(now() + delay_s, [this, token] { (*impl_->on_done)(token); });
}

void Machine::halt(const std::function<bool(Token)>& chosen) {
  for (auto& [key, running] : impl_->running) {
    if (chosen(running.token)) running.activity->suspend();
  }
}

void Machine::set_speed(HostIndex host, std::size_t which) { impl_->hosts[host]->set_pstate(which); }

void Machine::set_bandwidth(LinkIndex link, double bytes_per_s) {
  impl_->current[link] = bytes_per_s;
  impl_->links[link]->set_bandwidth(bytes_per_s * units_per_byte);
}

double Machine::now() const { return sg4::Engine::get_clock(); }

void Machine::run(const std::function<void(Token)>& on_done) {
  impl_->on_done = &on_done;
  sg4::Activity::on_completion_cb([impl = impl_.get()](const sg4::Activity& activity) { impl->completed(activity); });
  sg4::Engine::on_time_advance_cb([impl = impl_.get()](double) { impl->graveyard.clear(); });
  impl_->engine->run();
}

}  // namespace rehearse::sim
