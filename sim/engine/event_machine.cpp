// A heap entry for each delay, computation and flow under way, and fair shares of the links.
#include <stdexcept>
#include <vector>

#include "sim/engine/event_heap.hpp"
#include "sim/engine/fair_share.hpp"
#include "sim/engine/machine_impl.hpp"

namespace rehearse::sim {
namespace {

class EventMachine final : public Machine::Impl {
 public:
  HostIndex add_host(std::span<const double> speeds) override {
    hosts_.push_back({{speeds.begin(), speeds.end()}, 0, idle, false});
    return static_cast<HostIndex>(hosts_.size() - 1);
  }
  LinkIndex add_link(double bytes_per_s) override { return shares_.add_link(bytes_per_s); }
  void seal() override {}

  void compute(HostIndex host, double seconds, Token token) override {
    Host& on = hosts_[host];
    if (on.computes != idle) throw std::logic_error("a host computes one thing at a time");
    on.computes = add({token, Kind::computation, host, seconds, on.speeds[on.speed], now_s_});
    heap_.insert(on.computes, end_of(activities_[on.computes]));
  }

  void transfer(HostIndex /*from*/, HostIndex /*to*/, std::span<const LinkIndex> links, double bytes, Token token, double weight) override {
    if (links.empty()) throw std::logic_error("a flow needs a link");
    const FairShare::Flow flow = shares_.start(links, weight);
    if (flow >= activity_of_flow_.size()) activity_of_flow_.resize(flow + 1UL);
    activity_of_flow_[flow] = add({token, Kind::flow, flow, bytes, 0, now_s_});
  }

  void after(double delay_s, Token token) override { heap_.insert(add({token, Kind::delay, 0, 0, 1, now_s_}), now_s_ + delay_s); }

  void halt(const std::function<bool(Token)>& chosen) override {
    for (EventHeap::Event id = 0; id < activities_.size(); ++id) {
      const Activity& activity = activities_[id];
      if (activity.kind == Kind::none || activity.kind == Kind::delay || !chosen(activity.token)) continue;
      if (heap_.contains(id)) heap_.erase(id);
      release(id);
    }
  }

  void set_speed(HostIndex host, std::size_t which) override {
    Host& on = hosts_[host];
    on.speed = which;
    if (on.changed || on.computes == idle) return;
    on.changed = true;
    changed_.push_back(host);
  }
  void set_bandwidth(LinkIndex link, double bytes_per_s) override { shares_.set_bandwidth(link, bytes_per_s); }
  [[nodiscard]] double now() const override { return now_s_; }

  // What changes at one instant is worked out once, before time goes on.
  void run(const std::function<void(Token)>& on_done) override {
    for (settle(); !heap_.empty(); settle()) {
      now_s_ = heap_.first_at_s();
      while (!heap_.empty() && heap_.first_at_s() <= now_s_) {
        const EventHeap::Event id = heap_.pop();
        const Token token = activities_[id].token;
        release(id);
        on_done(token);
      }
    }
  }

 private:
  enum class Kind : std::uint8_t { none, delay, computation, flow };
  struct Activity {
    Token token = 0;
    Kind kind = Kind::none;
    std::uint32_t where = 0;  // host or flow
    double left = 0;          // seconds of work, or bytes, at since_s
    double rate = 0;          // of them per second
    double since_s = 0;
  };
  static constexpr EventHeap::Event idle = ~EventHeap::Event{0};
  struct Host {
    std::vector<double> speeds;
    std::size_t speed = 0;
    EventHeap::Event computes = idle;
    bool changed = false;
  };

  EventHeap::Event add(const Activity& activity) {
    if (free_.empty()) {
      activities_.push_back(activity);
      return static_cast<EventHeap::Event>(activities_.size() - 1);
    }
    const EventHeap::Event id = free_.back();
    free_.pop_back();
    activities_[id] = activity;
    return id;
  }

  void release(EventHeap::Event id) {
    Activity& activity = activities_[id];
    if (activity.kind == Kind::computation) hosts_[activity.where].computes = idle;
    if (activity.kind == Kind::flow) shares_.end(activity.where);
    activity.kind = Kind::none;
    free_.push_back(id);
  }

  [[nodiscard]] double end_of(const Activity& activity) const { return now_s_ + activity.left / activity.rate; }

  void go_on_at(EventHeap::Event id, double rate) {
    Activity& activity = activities_[id];
    if (activity.rate == rate) return;
    activity.left = std::max(0.0, activity.left - (now_s_ - activity.since_s) * activity.rate);
    activity.since_s = now_s_;
    activity.rate = rate;
    heap_.contains(id) ? heap_.move(id, end_of(activity)) : heap_.insert(id, end_of(activity));
  }

  void settle() {
    for (const HostIndex index : changed_) {
      Host& host = hosts_[index];
      host.changed = false;
      if (host.computes != idle) go_on_at(host.computes, host.speeds[host.speed]);
    }
    changed_.clear();
    for (const FairShare::Flow flow : shares_.settle()) go_on_at(activity_of_flow_[flow], shares_.rate(flow));
  }

  EventHeap heap_;
  FairShare shares_;
  std::vector<Activity> activities_;
  std::vector<EventHeap::Event> free_;
  std::vector<EventHeap::Event> activity_of_flow_;  // [flow]
  std::vector<Host> hosts_;
  std::vector<HostIndex> changed_;  // hosts
  double now_s_ = 0;
};

}  // namespace

std::unique_ptr<Machine::Impl> event_machine() { return std::make_unique<EventMachine>(); }

}  // namespace rehearse::sim
