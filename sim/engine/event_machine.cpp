// A heap entry for each delay, computation and flow under way, and fair shares of the links. Each area has a heap of its own: while it goes
// on alone what it needs is little, and stays in the caches.
#include <limits>
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
    hosts_.push_back({.speeds = {speeds.begin(), speeds.end()}});
    return static_cast<HostIndex>(hosts_.size() - 1);
  }
  LinkIndex add_link(double bytes_per_s) override { return shares_.add_link(bytes_per_s); }
  void divide(std::span<const AreaIndex> area_of_host) override {
    for (std::size_t i = 0; i < area_of_host.size(); ++i) {
      hosts_[i].area = area_of_host[i];
      if (area_of_host[i] >= areas_.size()) areas_.resize(area_of_host[i] + 1UL);
    }
  }
  void seal() override {}

  void compute(HostIndex host, double seconds, Token token) override {
    Host& on = hosts_[host];
    if (on.computes != idle) throw std::logic_error("a host computes one thing at a time");
    Area& area = areas_[on.area];
    on.computes = area.add({token, Kind::computation, host, seconds, on.speeds[on.speed], now_s_});
    area.heap.insert(on.computes, end_of(area.activities[on.computes]));
    touch(on.area);
  }

  void transfer(HostIndex /*from*/, HostIndex /*to*/, std::span<const LinkIndex> links, double bytes, Token token, double weight,
                AreaIndex area) override {
    if (links.empty()) throw std::logic_error("a flow needs a link");
    const FairShare::Flow flow = shares_.start(links, weight);
    if (flow >= activity_of_flow_.size()) activity_of_flow_.resize(flow + 1UL);
    activity_of_flow_[flow] = {area, areas_[area].add({token, Kind::flow, flow, bytes, 0, now_s_})};
  }

  void after(double delay_s, Token token, AreaIndex in) override {
    Area& area = areas_[in];
    area.heap.insert(area.add({token, Kind::delay, 0, 0, 1, now_s_}), now_s_ + delay_s);
    touch(in);
  }

  void halt(const std::function<bool(Token)>& chosen) override {
    for (AreaIndex in = 0; in < areas_.size(); ++in) {
      Area& area = areas_[in];
      for (EventHeap::Event id = 0; id < area.activities.size(); ++id) {
        const Activity& activity = area.activities[id];
        if (activity.kind == Kind::none || activity.kind == Kind::delay || !chosen(activity.token)) continue;
        if (area.heap.contains(id)) area.heap.erase(id);
        release(area, id);
      }
      touch(in);
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
  [[nodiscard]] double next_s(AreaIndex area) const override {
    const EventHeap& heap = areas_[area].heap;
    return heap.empty() ? std::numeric_limits<double>::infinity() : heap.first_at_s();
  }

  // The earliest instant of all areas, and then the area that came last in it alone, as far as it may go.
  void run(const std::function<void(Token)>& on_done, const Machine::GoesOn& goes_on) override {
    settle();
    for (take_turns(); !turns_.empty(); take_turns()) {
      const double at_s = turns_.first_at_s();
      AreaIndex area = everywhere;
      for (; !turns_.empty() && turns_.first_at_s() <= at_s; take_turns()) {
        area = turns_.first();
        tell(area, at_s, on_done);
      }
      settle();
      if (!goes_on || area == everywhere) continue;
      for (double next = next_s(area); next < std::numeric_limits<double>::infinity() && goes_on(area, next); next = next_s(area)) {
        tell(area, next, on_done);
        settle();
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
    std::vector<double> speeds = {};
    std::size_t speed = 0;
    AreaIndex area = everywhere;
    EventHeap::Event computes = idle;
    bool changed = false;
  };
  struct Area {
    EventHeap heap = {};
    std::vector<Activity> activities = {};
    std::vector<EventHeap::Event> free = {};
    bool touched = false;

    EventHeap::Event add(const Activity& activity) {
      if (free.empty()) {
        activities.push_back(activity);
        return static_cast<EventHeap::Event>(activities.size() - 1);
      }
      const EventHeap::Event id = free.back();
      free.pop_back();
      activities[id] = activity;
      return id;
    }
  };
  struct Place {
    AreaIndex area = everywhere;
    EventHeap::Event id = 0;
  };

  void release(Area& area, EventHeap::Event id) {
    Activity& activity = area.activities[id];
    if (activity.kind == Kind::computation) hosts_[activity.where].computes = idle;
    if (activity.kind == Kind::flow) shares_.end(activity.where);
    activity.kind = Kind::none;
    area.free.push_back(id);
  }

  // What ends in an area at an instant, and what that begins and ends at once.
  void tell(AreaIndex in, double at_s, const std::function<void(Token)>& on_done) {
    now_s_ = at_s;
    touch(in);
    while (!areas_[in].heap.empty() && areas_[in].heap.first_at_s() <= now_s_) {
      const EventHeap::Event id = areas_[in].heap.pop();
      const Token token = areas_[in].activities[id].token;
      release(areas_[in], id);
      on_done(token);
    }
  }

  void touch(AreaIndex area) {
    if (areas_[area].touched) return;
    areas_[area].touched = true;
    touched_.push_back(area);
  }

  // When it is the turn of each area whose heap has changed.
  void take_turns() {
    for (const AreaIndex area : touched_) {
      areas_[area].touched = false;
      const bool known = turns_.contains(area);
      if (areas_[area].heap.empty()) {
        if (known) turns_.erase(area);
      } else {
        known ? turns_.move(area, next_s(area)) : turns_.insert(area, next_s(area));
      }
    }
    touched_.clear();
  }

  [[nodiscard]] double end_of(const Activity& activity) const { return now_s_ + activity.left / activity.rate; }

  void go_on_at(const Place& place, double rate) {
    Area& area = areas_[place.area];
    Activity& activity = area.activities[place.id];
    if (activity.rate == rate) return;
    activity.left = std::max(0.0, activity.left - (now_s_ - activity.since_s) * activity.rate);
    activity.since_s = now_s_;
    activity.rate = rate;
    area.heap.contains(place.id) ? area.heap.move(place.id, end_of(activity)) : area.heap.insert(place.id, end_of(activity));
    touch(place.area);
  }

  void settle() {
    for (const HostIndex index : changed_) {
      Host& host = hosts_[index];
      host.changed = false;
      if (host.computes != idle) go_on_at({host.area, host.computes}, host.speeds[host.speed]);
    }
    changed_.clear();
    for (const FairShare::Flow flow : shares_.settle()) go_on_at(activity_of_flow_[flow], shares_.rate(flow));
  }

  std::vector<Area> areas_{1};
  EventHeap turns_;  // areas, by what happens there next
  std::vector<AreaIndex> touched_;
  FairShare shares_;
  std::vector<Place> activity_of_flow_;  // [flow]
  std::vector<Host> hosts_;
  std::vector<HostIndex> changed_;
  double now_s_ = 0;
};

}  // namespace

std::unique_ptr<Machine::Impl> event_machine() { return std::make_unique<EventMachine>(); }

}  // namespace rehearse::sim
