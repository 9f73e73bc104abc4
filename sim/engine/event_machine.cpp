// A heap entry for each delay, computation and flow under way, and fair shares of the links. Each area has a heap of its own: while it goes
// on alone what it needs is little, and stays in the caches.
#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <utility>
#include <vector>

#include "config/threads.hpp"
#include "sim/engine/activities.hpp"
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
    constexpr std::size_t for_each = 8;  // thread: which is done with one takes the next
    threads_ = std::max(threads, 1U);
    lanes_.resize(threads < 2 ? 2 : std::min(1 + for_each * threads, FairShare::most_lanes));
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
    Activities& area = areas_[on.area];
    on.computes = area.add({token, Kind::computation, host, seconds, on.speeds[on.speed], now()});
    area.heap.insert(on.computes, end_of(area.all[on.computes]));
    touch(on.area);
  }

  void transfer(HostIndex /*from*/, HostIndex /*to*/, std::span<const LinkIndex> links, double bytes, Token token, double weight,
                AreaIndex area) override {
    if (links.empty()) throw std::logic_error("a flow needs a link");
    if (Machine::lane() > 0 && std::ranges::any_of(links, [&](LinkIndex link) { return shares_.common(link); })) {
      return put_off([=, this, links = std::vector(links.begin(), links.end())] { start_flow(links, bytes, token, weight, area); });
    }
    start_flow(links, bytes, token, weight, area);
  }

  void start_flow(std::span<const LinkIndex> links, double bytes, Token token, double weight, AreaIndex area) {
    const std::size_t of = lane_of(area);
    const FairShare::Flow flow = shares_.start(links, weight, Machine::lane(), of);
    std::vector<Place>& places = lanes_[of].activity_of_flow;
    const std::size_t number = FairShare::number_in_lane(flow);
    if (number >= places.size()) places.resize(number + 1);
    const EventHeap::Event id = areas_[area].add({token, Kind::flow, flow, bytes, 0, now()});
    places[number] = {area, id};
    if (area != everywhere || areas_.size() == 1) return;
    if (id >= most_.size()) most_.resize(id + 1UL);
    most_[id] = shares_.most(flow);
  }

  void after(double delay_s, Token token, AreaIndex in) override {
    const Kind kind = in == everywhere && delay_s <= 0 ? Kind::notice : Kind::delay;
    if (in == everywhere && Machine::lane() > 0) return here().outside.push_back({now() + delay_s, here().area, token, kind});
    delay_until(now() + delay_s, token, in, kind);
  }

  void halt(const std::function<bool(Token)>& chosen) override {
    for (AreaIndex in = 0; in < areas_.size(); ++in) {
      Activities& area = areas_[in];
      for (EventHeap::Event id = 0; id < area.all.size(); ++id) {
        const Activity& activity = area.all[id];
        if (!activity.shares() || !chosen(activity.token)) continue;
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
  void set_bandwidth(LinkIndex link, double bytes_per_s) override {
    if (Machine::lane() > 0 && shares_.common(link)) return put_off([=, this] { shares_.set_bandwidth(link, bytes_per_s); });
    shares_.set_bandwidth(link, bytes_per_s, Machine::lane());
  }
  [[nodiscard]] double now() const override { return lanes_[Machine::lane()].now_s; }
  [[nodiscard]] double next_s(AreaIndex area) const override { return std::min(areas_[area].put_off_s, areas_[area].first_s()); }
  [[nodiscard]] double quiet_until_s() const override {
    double until = Activities::never;
    const Activities& area = areas_[everywhere];
    for (EventHeap::Event id = 0; id < area.all.size(); ++id) {
      const Activity& activity = area.all[id];
      if (activity.kind == Kind::delay) until = std::min(until, area.heap.at_s(id));
      if (activity.kind == Kind::flow) until = std::min(until, no_earlier(activity, most_[id]));
    }
    return until;
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
      if (together == 0 && !turns_.empty() && turns_.first() != everywhere) together = go_on_apart(on_done, *ahead);
    }
  }

 private:
  using Kind = Activity::Kind;
  static constexpr EventHeap::Event idle = ~EventHeap::Event{0};
  struct Host {
    std::vector<double> speeds = {};
    std::size_t speed = 0;
    AreaIndex area = everywhere;
    EventHeap::Event computes = idle;
    bool changed = false;
  };
  struct Place {
    AreaIndex area = everywhere;
    EventHeap::Event id = 0;
  };
  struct PutOff {
    AreaIndex area = everywhere;
    std::function<void()> what;
  };
  struct Outside {  // of an area's going on apart, which belongs to all
    double at_s = 0;
    AreaIndex area = everywhere;
    Token token = 0;
    Kind kind = Kind::delay;
    std::function<void()> put_off = {};
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

  void delay_until(double at_s, Token token, AreaIndex in, Kind kind = Kind::delay) {
    Activities& area = areas_[in];
    area.heap.insert(area.add({token, kind, 0, 0, 1, now()}), at_s);
    touch(in);
  }

  // What the area that goes on does now, once all have come to now; it goes no further before.
  void put_off(std::function<void()> what) {
    const AreaIndex area = here().area;
    areas_[area].put_off_s = now();
    here().outside.push_back({now(), area, 0, Kind::put_off, std::move(what)});
  }

  // When a flow ends, if its rate is at its most from now on. What is left has been rounded at each change of its rate.
  [[nodiscard]] static double no_earlier(const Activity& flow, double most) {
    constexpr double rounding = 1e-11;
    return (flow.since_s + flow.left / most) * (1 - rounding);
  }

  // Whether flows of everywhere go over links that flows of the area go over.
  [[nodiscard]] bool tangled(const Activities& area) const {
    return std::ranges::any_of(
        area.all, [&](const Activity& activity) { return activity.kind == Kind::flow && shares_.meets_common(activity.where); });
  }

  // Instants that were told.
  std::size_t go_on_alone(AreaIndex area, const std::function<void(Token)>& on_done, Ahead& ahead) {
    std::size_t instants = 0;
    for (double next = areas_[area].first_s(); next < areas_[area].put_off_s && ahead.goes_on(area, next); next = areas_[area].first_s()) {
      tell(area, next, on_done);
      settle();
      ++instants;
    }
    return instants;
  }

  // Each area as far as it may go. In which order lanes come, and how many there are, is nowhere to be seen. So many instants are to go by
  // before they part again; more and more where they do not get on.
  std::size_t go_on_apart(const std::function<void(Token)>& on_done, Ahead& ahead) {
    constexpr std::size_t looks = 256;  // that take as long as an instant of all areas together
    const std::size_t looked_at = ahead.part();
    if (looked_at == 0) return 0;
    on_lanes(on_done, ahead);
    apart_last_ = meet();
    ahead.meet();
    const bool gets_on = apart_last_ * looks >= looked_at;
    return pause_ = gets_on ? 0 : std::max(2 * pause_, looked_at / looks);
  }

  void on_lanes(const std::function<void(Token)>& on_done, Ahead& ahead) {
    constexpr std::size_t all = ~std::size_t{0};
    const bool first = apart_last_ == all;                           // and furthest, mostly
    const std::size_t few = threads_ == 1 ? all : first ? 0 : 1000;  // instants that are not worth threads
    std::size_t told = 0;
    for (std::size_t lane = 1; lane < lanes_.size() && told < few; ++lane) told += go_on_in_lane(lane, few - told, on_done, ahead);
    if (told < few) return;
    std::atomic<std::size_t> next = 1;
    std::atomic<bool> failed = false;
    config::on_threads(threads_, [&] {
      for (std::size_t lane = next++; lane < lanes_.size() && !failed; lane = next++) {
        try {
          go_on_in_lane(lane, all, on_done, ahead);
        } catch (...) {
          failed = true;
          throw;
        }
      }
    });
  }

  // All areas of the lane as far as they may go, but for those after so many instants, which were told.
  std::size_t go_on_in_lane(std::size_t lane, std::size_t enough, const std::function<void(Token)>& on_done, Ahead& ahead) {
    const InLane in(lane);
    const auto others = static_cast<AreaIndex>(lanes_.size() - 1);
    std::size_t told = 0;
    for (auto area = static_cast<AreaIndex>(lane == 1 ? others : lane - 1); area < areas_.size() && told < enough; area += others) {
      if (areas_[area].put_off_s < Activities::never || tangled(areas_[area])) continue;
      here().area = area;
      told += go_on_alone(area, on_done, ahead);
    }
    here().instants += told;
    return told;
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
    for (Outside& one : outside) {
      if (one.kind == Kind::put_off) {
        one.token = put_off_.take(0);
        put_off_[one.token] = {one.area, std::move(one.put_off)};
      }
      delay_until(one.at_s, one.token, everywhere, one.kind);
    }
    return instants;
  }

  void run_undivided(const std::function<void(Token)>& on_done) {
    for (EventHeap& heap = areas_.front().heap; !heap.empty(); settle()) tell(everywhere, heap.first_at_s(), on_done);
  }

  void release(Activities& area, EventHeap::Event id) {
    Activity& activity = area.all[id];
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
      const Activity& ended = areas_[in].all[id];
      const Token token = ended.token;
      const bool was_put_off = ended.kind == Kind::put_off;
      release(areas_[in], id);
      was_put_off ? make_up_for(token) : on_done(token);
    }
  }

  void make_up_for(Token which) {
    areas_[put_off_[which].area].put_off_s = Activities::never;
    std::exchange(put_off_[which].what, nullptr)();
    put_off_.give(which);
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
        known ? turns_.move(area, areas_[area].first_s()) : turns_.insert(area, areas_[area].first_s());
      }
    }
    here().touched.clear();
  }

  [[nodiscard]] double end_of(const Activity& activity) const { return now() + activity.left / activity.rate; }

  void go_on_at(const Place& place, double rate) {
    Activities& area = areas_[place.area];
    Activity& activity = area.all[place.id];
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

  std::vector<Activities> areas_{1};
  NumberedByLane<PutOff, Token, 32> put_off_;
  std::vector<double> most_;  // [activity of everywhere] of a flow, what its rate can be at most
  EventHeap turns_;           // areas, by what happens there next
  FairShare shares_;
  std::vector<Host> hosts_;
  std::vector<Lane> lanes_{1};
  unsigned threads_ = 1;
  std::size_t apart_last_ = ~std::size_t{0}, pause_ = 0;  // instants, when areas went on apart last and until they do again
};

}  // namespace

std::unique_ptr<Machine::Impl> event_machine() { return std::make_unique<EventMachine>(); }

}  // namespace rehearse::sim
