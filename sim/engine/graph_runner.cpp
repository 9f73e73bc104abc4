#include "sim/engine/graph_runner.hpp"

#include <algorithm>
#include <atomic>
#include <deque>
#include <thread>

#include "sim/engine/contention.hpp"
#include "sim/engine/launches.hpp"
#include "sim/engine/plan_carrier.hpp"
#include "sim/engine/spells.hpp"

namespace rehearse::sim {
namespace {

using workloads::Op;
using workloads::OpId;
using workloads::OpKind;
using workloads::StepGraph;

}  // namespace

class GraphRunner::Impl : private Ahead {
 public:
  Impl(const RunnerSetup& setup, Machine& machine, std::function<void(std::size_t)> ended)
      : setup_(setup),
        machine_(machine),
        report_(std::move(ended)),
        contention_(setup.gpu, setup.hosts.size(), setup.port_links, setup.flapping, setup.hosts, machine),
        spells_(setup.spells, setup.hosts.size(), contention_),
        pending_(machine.lanes()),
        carrier_(machine, pending_, [this](const Communicator& what) { communication_ended(what); }),
        dead_(setup.hosts.size()),
        cut_off_(setup.hosts.size()),
        lanes_(machine.lanes()) {}

  std::size_t add(const Launchable& graph) { return launches_.add(graph); }

  void at(double when_s, std::function<void()> then) {
    machine_.after(std::max(0.0, when_s - machine_.now()),
                   RunnerToken::of(RunnerEvent::timer, 0, static_cast<std::uint32_t>(timers_.size())));
    timers_.push_back(std::move(then));
  }

  void launch(std::size_t which, Execution& times, std::function<void()> done) {
    const LaunchIndex index = launches_.begin(which, times, std::move(done), machine_.now());
    Launch& launch = launches_[index];
    const StepGraph& graph = launch.graph();
    if (setup_.areas != nullptr) {
      exchanges_.emplace(*setup_.areas, graph, machine_, times);
      in_areas_ = index;
    }
    for (OpId id = 0; id < graph.size(); ++id) {
      if (graph.in_degree(id) == 0 && launch.met[id] == 0) arrive(index, launch, id);
    }
    if (graph.size() == 0) complete_.push_back(index);
  }

  void fail(const RankFailure& failure) {
    failed_ = true;
    for (const std::uint32_t rank : failure.ranks) {
      (failure.ports ? cut_off_ : dead_)[rank] = true;
      if (!failure.ports) contention_.compute_ends(rank);
    }
    carrier_.stop([this](const Communicator& what) {
      const bool stops = stands_still(what);
      if (stops) tell_contention(what, false);
      return stops;
    });
    pending().activities = 0;
    machine_.halt([this](Token token) {
      const bool stops = stopped(RunnerToken(token));
      pending().activities += stops ? 0 : 1;
      return stops;
    });
  }

  [[nodiscard]] bool under_way() const { return launches_.under_way(); }

  void run() {
    for (std::uint32_t i = 0; i < setup_.spells.size(); ++i)
      machine_.after(setup_.spells[i].from_s, RunnerToken::of(RunnerEvent::spell_begins, 0, i));
    machine_.run([this](Token token) { on(token); }, setup_.areas != nullptr ? this : nullptr);
    if (under_way() && !failed_) throw_stuck(launches_.oldest());
  }

 private:
  struct alignas(64) Lane {
    std::vector<std::pair<LaunchIndex, OpId>> finished;
    std::size_t ended = 0;     // while areas go on apart
    std::size_t reported = 0;  // of those that have ended
  };
  [[nodiscard]] Lane& here() { return lanes_[Machine::lane()]; }
  [[nodiscard]] Pending& pending() { return pending_[Machine::lane()]; }

  bool goes_on(AreaIndex area, double until_s) override { return exchanges_->goes_on(area, until_s); }
  std::size_t part() override { return exchanges_ && launches_.under_way() ? exchanges_->part() : 0; }
  void meet() override {
    exchanges_->meet();
    Launch& launch = launches_[in_areas_];
    for (Lane& lane : lanes_) launch.ended += std::exchange(lane.ended, 0);
    if (launch.ended == launch.graph().size()) complete_.push_back(in_areas_);
    settle();
  }

  void on(Token done) {
    const RunnerToken token(done);
    switch (token.event) {
      case RunnerEvent::compute_done: {
        --pending().activities;
        const std::uint32_t rank = rank_of(launches_[token.slot], token.low);
        if (dead_[rank]) return;
        contention_.compute_ends(rank);
        here().finished.emplace_back(static_cast<LaunchIndex>(token.slot), token.low);
        break;
      }
      case RunnerEvent::delay_done:
        --pending().delays;
        if (carrier_.hung(token.slot)) return;
        carrier_.delays_done(token.slot, token.low);
        break;
      case RunnerEvent::flow_done:
        --pending().activities;
        if (carrier_.hung(token.slot)) return;
        carrier_.flow_done(token.slot, token.low);
        break;
      case RunnerEvent::arrival:
        join(static_cast<LaunchIndex>(token.slot), graph_of(token.slot).op(token.low));
        break;
      case RunnerEvent::timer:
        std::exchange(timers_[token.low], nullptr)();
        break;
      case RunnerEvent::spell_begins:
        return begin_spell(token.low);
      case RunnerEvent::spell_ends:
        return spells_.end(token.low);
    }
    settle();
  }

  // Works off everything that needs no simulated time.
  void settle() {
    std::vector<std::pair<LaunchIndex, OpId>>& finished = here().finished;
    while (true) {
      while (!finished.empty()) {
        const auto [launch, op] = finished.back();
        finished.pop_back();
        finish(launch, op);
      }
      if (Machine::lane() > 0 || complete_.empty()) return;
      const LaunchIndex index = complete_.back();
      complete_.pop_back();
      Launch& launch = launches_[index];
      launch.times->step_s = step_length(launch.graph(), *launch.times);
      const std::function<void()> done = launches_.end(index);
      if (done) done();
    }
  }

  // Again and again, as long as anything goes on that it could slow.
  void begin_spell(std::uint32_t which) {
    const RankSpell& spell = setup_.spells[which];
    if (!under_way() || pending().activities + pending().delays == 0) return;
    spells_.begin(which);
    machine_.after(spell.for_s, RunnerToken::of(RunnerEvent::spell_ends, 0, which));
    if (spell.every_s) machine_.after(*spell.every_s, RunnerToken::of(RunnerEvent::spell_begins, 0, which));
  }

  // Whether an activity is of what has failed.
  [[nodiscard]] bool stopped(const RunnerToken& token) const {
    if (token.event == RunnerEvent::flow_done) return carrier_.hung(token.slot);
    return token.event == RunnerEvent::compute_done && dead_[rank_of(launches_[token.slot], token.low)];
  }

  // Whether a communication needs a GPU or a port that is dead.
  [[nodiscard]] bool stands_still(const Communicator& it) const {
    if (!failed_) return false;
    const Launchable& what = *launches_[it.launch].what;
    const StepGraph& graph = what.graph;
    const Op op = graph.op(it.op);
    const bool over_network = what.prices.calls[op.item].inter_bytes > 0;
    const auto gone = [&](std::uint32_t rank) {
      return dead_[what.first_rank + rank] || (cut_off_[what.first_rank + rank] && over_network);
    };
    bool still = op.kind == OpKind::p2p && gone(graph.receiver(it.op));
    for_each_member(graph, it.op, op, [&](OpId member) { still = still || gone(graph.op(member).rank); });
    return still;
  }

  [[nodiscard]] const StepGraph& graph_of(std::uint64_t launch) const { return launches_[launch].graph(); }
  [[nodiscard]] static std::uint32_t rank_of(const Launch& launch, OpId id) {
    const StepGraph& graph = launch.what->graph;
    const workloads::RankBlock& block = graph.block_of(id);
    return launch.what->first_rank + block.rank + graph.in_program(block, id).rank;
  }
  [[nodiscard]] double now(const Launch& launch) const { return machine_.now() - launch.begun_s; }

  void arrive(LaunchIndex index, Launch& launch, OpId id) {
    const StepGraph& graph = launch.what->graph;
    const Op op = graph.op(id);
    if (dead_[launch.what->first_rank + op.rank]) return;
    launch.times->arrive_s[id] = now(launch);
    switch (op.kind) {
      case OpKind::compute:
        return start_compute(index, launch, id, op);
      case OpKind::p2p:
      case OpKind::copy:
        return start_communication(index, launch, id, op);
      case OpKind::collective:
        if (!between_areas(op)) return join(index, op);
        exchanges_->comes(id, op.joint);
        return machine_.after(0, RunnerToken::of(RunnerEvent::arrival, index, id));  // once all areas have come to now
    }
  }

  [[nodiscard]] bool between_areas(const Op& op) const {
    return setup_.areas != nullptr && op.kind == OpKind::collective && setup_.areas->between[op.item];
  }

  // A member has come to its collective.
  void join(LaunchIndex index, const Op& op) {
    Launch& launch = launches_[index];
    const StepGraph& graph = launch.what->graph;
    if (++launch.present[op.joint] < graph.members(op.joint).size()) return;
    const OpId first = graph.members(op.joint).front();
    start_communication(index, launch, first, graph.op(first));
  }

  void start_compute(LaunchIndex index, Launch& launch, OpId id, const Op& op) {
    const double seconds = launch.what->prices.compute_s(op);
    if (seconds <= 0) {
      here().finished.emplace_back(index, id);
      return;
    }
    const std::uint32_t rank = launch.what->first_rank + op.rank;
    contention_.compute_starts(rank);
    ++pending().activities;
    machine_.compute(setup_.hosts[rank], seconds, RunnerToken::of(RunnerEvent::compute_done, index, id));
  }

  // The operations that a communication is, on all ranks it involves.
  template <class Visit>
  static void for_each_member(const StepGraph& graph, OpId id, const Op& op, Visit visit) {
    if (op.kind != OpKind::collective) return visit(id);
    for (const OpId member : graph.members(op.joint)) visit(member);
  }

  void tell_contention(const Communicator& it, bool starts) {
    const Launchable& what = *launches_[it.launch].what;
    const StepGraph& graph = what.graph;
    const Op first = graph.op(it.op);
    const CallPrice& price = what.prices.calls[first.item];
    const auto tell = [&](std::uint32_t rank, workloads::Phase phase) {
      rank += what.first_rank;
      starts ? contention_.communication_starts(rank, phase, price) : contention_.communication_ends(rank, phase, price);
    };
    for_each_member(graph, it.op, first, [&](OpId member) {
      const workloads::RankBlock& block = graph.block_of(member);
      const Op& op = graph.in_program(block, member);
      tell(block.rank + op.rank, op.phase);
    });
    if (first.kind == OpKind::p2p && graph.receiver(it.op) != first.rank) tell(graph.receiver(it.op), first.phase);
  }

  void start_communication(LaunchIndex index, Launch& launch, OpId id, const Op& op) {
    if (stands_still({index, id})) return;
    if (op.kind == OpKind::collective) launch.times->begin_s[op.joint] = now(launch);
    tell_contention({index, id}, true);
    const bool inside = setup_.areas != nullptr && !between_areas(op);  // goes on in one area
    if (between_areas(op)) exchanges_->begins(op.joint);
    carrier_.begin(launch.what->plans[op.item], {index, id}, inside ? setup_.areas->of_rank[op.rank] : everywhere);
  }

  void communication_ended(const Communicator& what) {
    tell_contention(what, false);
    const StepGraph& graph = graph_of(what.launch);
    const Op op = graph.op(what.op);
    if (between_areas(op)) exchanges_->ends(op.joint);
    for_each_member(graph, what.op, op, [&](OpId member) { here().finished.emplace_back(what.launch, member); });
  }

  void finish(LaunchIndex index, OpId id) {
    Launch& launch = launches_[index];
    const StepGraph& graph = launch.what->graph;
    launch.times->end_s[id] = now(launch);
    if (report_) report();
    for (const OpId next : graph.successors_of(id)) come(index, launch, next);
    if (!launch.followed_by.empty()) {
      if (const auto followers = launch.followed_by.extract(id)) {
        for (const auto& [later, first] : followers.mapped()) come(later, launches_[later], first);
      }
    }
    if (Machine::lane() > 0) {
      ++here().ended;
    } else if (++launch.ended == graph.size()) {
      complete_.push_back(index);
    }
  }

  // Now and then, from the thread that runs all.
  void report() {
    constexpr std::size_t now_and_then = 0x1000;
    if (++here().reported % now_and_then != 0) return;
    reported_ += now_and_then;
    if (std::this_thread::get_id() == thread_) report_(reported_);
  }

  // One thing less that the operation waits for.
  void come(LaunchIndex index, Launch& launch, OpId id) {
    if (++launch.met[id] == launch.what->graph.in_degree(id)) arrive(index, launch, id);
  }

  const RunnerSetup setup_;
  Machine& machine_;
  const std::function<void(std::size_t)> report_;
  Contention contention_;
  Spells spells_;
  std::optional<Exchanges> exchanges_;  // between areas
  std::vector<Pending> pending_;        // [lane]
  PlanCarrier carrier_;
  Launches launches_;
  std::deque<std::function<void()>> timers_;
  std::vector<LaunchIndex> complete_;
  LaunchIndex in_areas_ = 0;  // the launch that goes on in them
  const std::thread::id thread_ = std::this_thread::get_id();
  std::atomic<std::size_t> reported_ = 0;
  std::vector<bool> dead_, cut_off_;  // [rank]
  bool failed_ = false;
  std::vector<Lane> lanes_;  // of the machine
};

GraphRunner::GraphRunner(const RunnerSetup& setup, Machine& machine, std::function<void(std::size_t)> ended)
    : impl_(std::make_unique<Impl>(setup, machine, std::move(ended))) {}
GraphRunner::~GraphRunner() = default;

std::size_t GraphRunner::add(const Launchable& graph) { return impl_->add(graph); }
void GraphRunner::at(double when_s, std::function<void()> then) { impl_->at(when_s, std::move(then)); }
void GraphRunner::launch(std::size_t graph, Execution& times, std::function<void()> done) { impl_->launch(graph, times, std::move(done)); }
void GraphRunner::fail(const RankFailure& failure) { impl_->fail(failure); }
bool GraphRunner::under_way() const { return impl_->under_way(); }
void GraphRunner::run() { impl_->run(); }

}  // namespace rehearse::sim
