// A heap entry for each delay, computation and flow under way, and fair shares of the links. Each area has a heap of its own: while it goes
// on alone what it needs is little, and stays in the caches.
#include <algorithm>
#include <atomic>
#include <limits>
#include <stdexcept>
#include <utility>
#include <vector>

#include "config/threads.hpp"
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
  void divide(std::span<const AreaIndex> area_of_host, unsigned threads) override {
    lanes_.resize(std::clamp(1UL + threads, 2UL, FairShare::most_lanes));
    shares_.divide(lanes_.size());
    for (std::size_t i = 0; i < area_of_host.size(); ++i) {
      hosts_[i].area = area_of_host[i];
      if (area_of_host[i] >= areas_.size()) areas_.resize(area_of_host[i] + 1UL);
    }
  }
  [[nodiscard]] std::size_t lanes() const override { return lanes_.size(); }
  [[nodiscard]] std::size_t lane_of(AreaIndex area) const override {
    return area == everywhere || lanes_.size() == 1 ? 0 : 1 + area % (lanes_.size() - 1);
  }
  void seal() override {}

  void compute(HostIndex host, double seconds, Token token) override {
    Host& on = hosts_[host];
    if (on.computes != idle) throw std::logic_error("a host computes one thing at a time");
    Area& area = areas_[on.area];
    on.computes = area.add({token, Kind::computation, host, seconds, on.speeds[on.speed], now()});
    area.heap.insert(on.computes, end_of(area.activities[on.computes]));
    touch(on.area);
  }

  void transfer(HostIndex /*from*/, HostIndex /*to*/, std::span<const LinkIndex> links, double bytes, Token token, double weight,
                AreaIndex area) override {
    if (links.empty()) throw std::logic_error("a flow needs a link");
    const std::size_t of = lane_of(area);
    const FairShare::Flow flow = shares_.start(links, weight, Machine::lane(), of);
    std::vector<Place>& places = lanes_[of].activity_of_flow;
    const std::size_t number = FairShare::number_in_lane(flow);
    if (number >= places.size()) places.resize(number + 1);
    places[number] = {area, areas_[area].add({token, Kind::flow, flow, bytes, 0, now()})};
  }

  void after(double delay_s, Token token, AreaIndex in) override {
    if (in == everywhere && Machine::lane() > 0) return here().outside.push_back({now() + delay_s, here().area, token});
    delay_until(now() + delay_s, token, in);
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
    here().changed.push_back(host);
  }
  void set_bandwidth(LinkIndex link, double bytes_per_s) override { shares_.set_bandwidth(link, bytes_per_s, Machine::lane()); }
  [[nodiscard]] double now() const override { return lanes_[Machine::lane()].now_s; }
  [[nodiscard]] double next_s(AreaIndex area) const override {
    const EventHeap& heap = areas_[area].heap;
    return heap.empty() ? std::numeric_limits<double>::infinity() : heap.first_at_s();
  }

  // The earliest instant of all areas, then the area that came last in it alone, as far as it may go; and now and then all of them.
  void run(const std::function<void(Token)>& on_done, Ahead* ahead) override {
    settle();
    if (areas_.size() == 1) return run_undivided(on_done);
    std::size_t together = 0;  // instants until they part again
    for (take_turns(); !turns_.empty(); take_turns()) {
      const double at_s = turns_.first_at_s();
      AreaIndex area = everywhere;
      std::size_t instants = 0;
      for (; !turns_.empty() && turns_.first_at_s() <= at_s; take_turns(), ++instants) {
        area = turns_.first();
        tell(area, at_s, on_done);
      }
      settle();
      if (ahead == nullptr) continue;
      if (area != everywhere) instants += go_on_alone(area, on_done, *ahead);
      together -= std::min(together, instants);
      if (together == 0) together = go_on_apart(on_done, *ahead);
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
  struct Outside {  // of an area's going on apart, which belongs to all
    double at_s = 0;
    AreaIndex area = everywhere;
    Token token = 0;
    bool operator<(const Outside& other) const { return at_s < other.at_s || (at_s == other.at_s && area < other.area); }
  };
  struct alignas(64) Lane {
    double now_s = 0;
    AreaIndex area = everywhere;  // that goes on
    std::vector<AreaIndex> touched;
    std::vector<HostIndex> changed;
    std::vector<Outside> outside;
    std::size_t instants = 0;
    std::vector<Place> activity_of_flow;  // [number in the lane]
  };
  // The thread is in a lane until this ends.
  struct InLane {
    explicit InLane(std::size_t lane) { enter(lane); }
    ~InLane() { enter(0); }
    InLane(const InLane&) = delete;
    InLane& operator=(const InLane&) = delete;
  };
  [[nodiscard]] Lane& here() { return lanes_[Machine::lane()]; }

  void delay_until(double at_s, Token token, AreaIndex in) {
    Area& area = areas_[in];
    area.heap.insert(area.add({token, Kind::delay, 0, 0, 1, now()}), at_s);
    touch(in);
  }

  // Instants that were told.
  std::size_t go_on_alone(AreaIndex area, const std::function<void(Token)>& on_done, Ahead& ahead) {
    std::size_t instants = 0;
    for (double next = next_s(area); next < std::numeric_limits<double>::infinity() && ahead.goes_on(area, next); next = next_s(area)) {
      tell(area, next, on_done);
      settle();
      ++instants;
    }
    return instants;
  }

  // Each area as far as it may go. In which order lanes come, and how many there are, is nowhere to be seen. So many instants are to go by
  // before they part again; more and more where they do not get on.
  std::size_t go_on_apart(const std::function<void(Token)>& on_done, Ahead& ahead) {
    constexpr std::size_t looks = 32;  // that take as long as an instant
    const std::size_t looked_at = ahead.part();
    if (looked_at == 0) return 0;
    on_lanes(on_done, ahead);
    apart_last_ = meet();
    ahead.meet();
    const bool gets_on = apart_last_ * looks >= looked_at;
    return pause_ = gets_on ? 0 : std::max(2 * pause_, looked_at / looks);
  }

  void on_lanes(const std::function<void(Token)>& on_done, Ahead& ahead) {
    constexpr std::size_t many = 10'000;  // instants that are worth a thread
    std::atomic<std::size_t> next = 1;
    std::atomic<bool> failed = false;
    const auto threads = static_cast<unsigned>(lanes_.size() - 1);
    config::on_threads(pause_ == 0 && apart_last_ < many ? 1 : threads, [&] {
      for (std::size_t lane = next++; lane < lanes_.size() && !failed; lane = next++) {
        const InLane in(lane);
        try {
          for (AreaIndex area = 1; area < areas_.size() && !failed; ++area) {
            if (lane_of(area) != lane) continue;
            here().area = area;
            here().instants += go_on_alone(area, on_done, ahead);
          }
        } catch (...) {
          failed = true;
          throw;
        }
      }
    });
  }

  // What lanes have left for all.
  std::size_t meet() {
    std::size_t instants = 0;
    std::vector<Outside> outside;
    for (std::size_t i = 1; i < lanes_.size(); ++i) {
      Lane& lane = lanes_[i];
      instants += std::exchange(lane.instants, 0);
      outside.insert(outside.end(), lane.outside.begin(), lane.outside.end());
      here().touched.insert(here().touched.end(), lane.touched.begin(), lane.touched.end());
      lane.outside.clear();
      lane.touched.clear();
    }
    std::ranges::sort(here().touched);
    std::ranges::stable_sort(outside, std::less<>());
    for (const Outside& one : outside) delay_until(one.at_s, one.token, everywhere);
    return instants;
  }

  void run_undivided(const std::function<void(Token)>& on_done) {
    for (EventHeap& heap = areas_.front().heap; !heap.empty(); settle()) tell(everywhere, heap.first_at_s(), on_done);
  }

  void release(Area& area, EventHeap::Event id) {
    Activity& activity = area.activities[id];
    if (activity.kind == Kind::computation) hosts_[activity.where].computes = idle;
    if (activity.kind == Kind::flow) shares_.end(activity.where, Machine::lane());
    activity.kind = Kind::none;
    area.free.push_back(id);
  }

  // What ends in an area at an instant, and what that begins and ends at once.
  void tell(AreaIndex in, double at_s, const std::function<void(Token)>& on_done) {
    here().now_s = at_s;
    touch(in);
    while (!areas_[in].heap.empty() && areas_[in].heap.first_at_s() <= at_s) {
      const EventHeap::Event id = areas_[in].heap.pop();
      const Token token = areas_[in].activities[id].token;
      release(areas_[in], id);
      on_done(token);
    }
  }

  void touch(AreaIndex area) {
    if (areas_[area].touched) return;
    areas_[area].touched = true;
    here().touched.push_back(area);
  }

  // When it is the turn of each area whose heap has changed.
  void take_turns() {
    for (const AreaIndex area : here().touched) {
      areas_[area].touched = false;
      const bool known = turns_.contains(area);
      if (areas_[area].heap.empty()) {
        if (known) turns_.erase(area);
      } else {
        known ? turns_.move(area, next_s(area)) : turns_.insert(area, next_s(area));
      }
    }
    here().touched.clear();
  }

  [[nodiscard]] double end_of(const Activity& activity) const { return now() + activity.left / activity.rate; }

  void go_on_at(const Place& place, double rate) {
    Area& area = areas_[place.area];
    Activity& activity = area.activities[place.id];
    if (activity.rate == rate) return;
    activity.left = std::max(0.0, activity.left - (now() - activity.since_s) * activity.rate);
    activity.since_s = now();
    activity.rate = rate;
    area.heap.contains(place.id) ? area.heap.move(place.id, end_of(activity)) : area.heap.insert(place.id, end_of(activity));
    touch(place.area);
  }

  void settle() {
    for (const HostIndex index : here().changed) {
      Host& host = hosts_[index];
      host.changed = false;
      if (host.computes != idle) go_on_at({host.area, host.computes}, host.speeds[host.speed]);
    }
    here().changed.clear();
    for (const FairShare::Flow flow : shares_.settle(Machine::lane())) {
      go_on_at(lanes_[FairShare::lane_of(flow)].activity_of_flow[FairShare::number_in_lane(flow)], shares_.rate(flow));
    }
  }

  std::vector<Area> areas_{1};
  EventHeap turns_;  // areas, by what happens there next
  FairShare shares_;
  std::vector<Host> hosts_;
  std::vector<Lane> lanes_{1};
  std::size_t apart_last_ = ~std::size_t{0}, pause_ = 0;  // instants, when areas went on apart last and until they do again
};

}  // namespace

std::unique_ptr<Machine::Impl> event_machine() { return std::make_unique<EventMachine>(); }

}  // namespace rehearse::sim
