#include "sim/engine/executor.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "sim/engine/contention.hpp"
#include "sim/engine/spells.hpp"

namespace rehearse::sim {
namespace {

using workloads::Op;
using workloads::OpId;
using workloads::OpKind;
using workloads::StepGraph;

// What a token stands for: the kind in the upper bits, then the communication's slot and the leg, or the operation.
enum class Event : Token { compute_done, delay_done, flow_done, failure, spell_begins, spell_ends };
constexpr int event_shift = 60, slot_shift = 32;
constexpr Token slot_mask = (Token{1} << (event_shift - slot_shift)) - 1;
Token token_of(Event event, std::uint64_t slot, std::uint32_t leg) {
  return (static_cast<Token>(event) << event_shift) | (slot << slot_shift) | leg;
}

// A communication under way.
struct Running {
  const CommPlan* plan = nullptr;
  OpId op = 0;  // p2p or copy, or the first member of the collective
  std::size_t legs_left = 0;
  int repeats_left = 0;
  bool under_way = false, hung = false;
  std::vector<std::uint32_t> waits;
};

class Executor {
 public:
  Executor(const ExecutorSetup& setup, Machine& machine, const Progress& progress)
      : setup_(setup),
        graph_(setup.graph),
        machine_(machine),
        progress_(progress),
        contention_(setup.job.system.gpu, setup.graph.ranks.size(), setup.port_links, setup.flapping, setup.hosts, machine),
        spells_(setup.spells, setup.graph.ranks.size(), contention_),
        dead_(setup.graph.ranks.size()),
        cut_off_(setup.graph.ranks.size()) {}

  std::vector<Execution> run() {
    // The first operations are started from inside the run, like all others.
    machine_.after(0, token_of(Event::compute_done, slot_mask, 0));
    for (std::uint32_t i = 0; i < setup_.failures.size(); ++i) machine_.after(setup_.failures[i].at_s, token_of(Event::failure, 0, i));
    for (std::uint32_t i = 0; i < setup_.spells.size(); ++i) machine_.after(setup_.spells[i].from_s, token_of(Event::spell_begins, 0, i));
    machine_.run([this](Token token) { on(token); });
    if (done_ != graph_.size() && setup_.failures.empty()) report_stuck();
    return std::move(steps_);
  }

 private:
  void begin_step() {
    const std::size_t n = graph_.size();
    step_start_s_ = machine_.now();
    done_ = 0;
    met_.assign(n, 0);
    present_.assign(graph_.joints(), 0);
    Execution& step = steps_.emplace_back();
    for (auto* times : {&step.arrive_s, &step.start_s, &step.end_s}) times->assign(n, never_s);
    for (OpId id = 0; id < n; ++id) {
      if (graph_.in_degree(id) == 0) arrive(id);
    }
    settle();
  }

  void on(Token token) {
    const auto event = static_cast<Event>(token >> event_shift);
    const std::uint64_t slot = (token >> slot_shift) & slot_mask;
    const auto low = static_cast<std::uint32_t>(token);
    switch (event) {
      case Event::compute_done: {
        if (slot == slot_mask) return begin_step();
        --in_flight_;
        const std::uint32_t rank = graph_.op(low).rank;
        if (dead_[rank]) return;
        contention_.compute_ends(rank);
        finished_.push_back(low);
        break;
      }
      case Event::delay_done:
        --delays_;
        if (running_[slot].hung) return;
        delays_done(slot, low);
        break;
      case Event::flow_done:
        --in_flight_;
        if (running_[slot].hung) return;
        leg_done(slot, low);
        break;
      case Event::failure:
        return fail(setup_.failures[low]);
      case Event::spell_begins:
        return begin_spell(low);
      case Event::spell_ends:
        return spells_.end(low);
    }
    settle();
  }

  // Works off everything that needs no simulated time.
  void settle() {
    while (!finished_.empty()) {
      const OpId id = finished_.back();
      finished_.pop_back();
      finish(id);
    }
    if (done_ == graph_.size()) end_step();
  }

  void end_step() {
    Execution& step = steps_.back();
    step.step_s = step_length(graph_, step);
    done_ = 0;
    if (static_cast<int>(steps_.size()) < setup_.job.system.simulation.steps) return begin_step();
    done_ = graph_.size();
  }

  // Again and again, as long as anything goes on that it could slow.
  void begin_spell(std::uint32_t which) {
    const RankSpell& spell = setup_.spells[which];
    if (done_ == graph_.size() || in_flight_ + delays_ == 0) return;
    spells_.begin(which);
    machine_.after(spell.for_s, token_of(Event::spell_ends, 0, which));
    if (spell.every_s) machine_.after(*spell.every_s, token_of(Event::spell_begins, 0, which));
  }

  void fail(const RankFailure& failure) {
    for (const std::uint32_t rank : failure.ranks) {
      if (done_ == graph_.size()) return;
      (failure.ports ? cut_off_ : dead_)[rank] = true;
      if (!failure.ports) contention_.compute_ends(rank);
    }
    for (Running& running : running_) {
      if (!running.under_way || running.hung || !stands_still(running.op)) continue;
      running.hung = true;
      tell_contention(running.op, false);
    }
    in_flight_ = 0;
    machine_.halt([this](Token token) {
      const bool stops = stopped(token);
      in_flight_ += stops ? 0 : 1;
      return stops;
    });
  }

  // Whether an activity is of what has failed.
  [[nodiscard]] bool stopped(Token token) const {
    const std::uint64_t slot = (token >> slot_shift) & slot_mask;
    switch (static_cast<Event>(token >> event_shift)) {
      case Event::compute_done:
        return bool{dead_[graph_.op(static_cast<std::uint32_t>(token)).rank]};
      case Event::flow_done:
        return running_[slot].hung;
      default:
        return false;
    }
  }

  // Whether a communication needs a GPU or a port that is dead.
  [[nodiscard]] bool stands_still(OpId id) const {
    if (setup_.failures.empty()) return false;
    const bool over_network = setup_.prices.calls[graph_.op(id).item].inter_bytes > 0;
    const auto gone = [&](std::uint32_t rank) { return dead_[rank] || (cut_off_[rank] && over_network); };
    bool still = graph_.op(id).kind == OpKind::p2p && gone(graph_.receiver(id));
    for_each_member(id, [&](OpId member) { still = still || gone(graph_.op(member).rank); });
    return still;
  }

  [[nodiscard]] double now() const { return machine_.now() - step_start_s_; }

  void arrive(OpId id) {
    const Op op = graph_.op(id);
    if (dead_[op.rank]) return;
    steps_.back().arrive_s[id] = now();
    switch (op.kind) {
      case OpKind::compute:
        return start_compute(id, op);
      case OpKind::p2p:
      case OpKind::copy:
        return start_communication(id, op.item);
      case OpKind::collective:
        if (++present_[op.joint] < graph_.members(op.joint).size()) return;
        const OpId first = graph_.members(op.joint).front();
        return start_communication(first, graph_.op(first).item);
    }
  }

  void start_compute(OpId id, const Op& op) {
    steps_.back().start_s[id] = now();
    const double seconds = setup_.prices.compute_s(op);
    if (seconds <= 0) return finished_.push_back(id);
    contention_.compute_starts(op.rank);
    ++in_flight_;
    machine_.compute(setup_.hosts[op.rank], seconds, token_of(Event::compute_done, 0, id));
  }

  // The operations that a communication is, on all ranks it involves.
  template <class Visit>
  void for_each_member(OpId id, Visit visit) const {
    for_each_member(id, graph_.op(id), visit);
  }
  template <class Visit>
  void for_each_member(OpId id, const Op& op, Visit visit) const {
    if (op.kind != OpKind::collective) return visit(id);
    for (const OpId member : graph_.members(op.joint)) visit(member);
  }

  void tell_contention(OpId id, bool starts) {
    const Op first = graph_.op(id);
    const CallPrice& price = setup_.prices.calls[first.item];
    const auto tell = [&](std::uint32_t rank, workloads::Phase phase) {
      starts ? contention_.communication_starts(rank, phase, price) : contention_.communication_ends(rank, phase, price);
    };
    for_each_member(id, first, [&](OpId member) {
      const Op op = graph_.op(member);
      tell(op.rank, op.phase);
    });
    if (first.kind == OpKind::p2p && graph_.receiver(id) != first.rank) tell(graph_.receiver(id), first.phase);
  }

  void start_communication(OpId id, std::uint32_t call) {
    if (stands_still(id)) return;
    for_each_member(id, [&](OpId member) { steps_.back().start_s[member] = now(); });
    tell_contention(id, true);
    std::size_t slot = running_.size();
    if (free_.empty()) {
      running_.emplace_back();
    } else {
      slot = free_.back();
      free_.pop_back();
    }
    running_[slot].plan = &setup_.plans[call];
    running_[slot].op = id;
    running_[slot].under_way = true;
    running_[slot].repeats_left = setup_.plans[call].repeat;
    start_round(slot);
  }

  void start_round(std::size_t slot) {
    const CommPlan& plan = *running_[slot].plan;
    running_[slot].legs_left = plan.legs.size();
    running_[slot].waits.clear();
    for (const Leg& leg : plan.legs) running_[slot].waits.push_back(leg.waits_for);
    double delay_s = -1;
    for (std::uint32_t leg = 0; leg < plan.legs.size(); ++leg) {
      if (plan.legs[leg].waits_for > 0 || plan.legs[leg].delay_s == delay_s) continue;
      delay_s = plan.legs[leg].delay_s;
      if (delay_s > 0) {
        ++delays_;
        machine_.after(delay_s, token_of(Event::delay_done, slot, leg));
      } else {
        delays_done(slot, leg);
      }
    }
  }

  // Legs that wait for nothing and have the same delay share one, from the first of them to the next with another.
  void delays_done(std::size_t slot, std::uint32_t first) {
    const CommPlan& plan = *running_[slot].plan;
    delay_done(slot, first);
    if (plan.legs[first].waits_for > 0) return;
    for (std::uint32_t leg = first + 1; leg < plan.legs.size(); ++leg) {
      if (plan.legs[leg].waits_for > 0) continue;
      if (plan.legs[leg].delay_s != plan.legs[first].delay_s) return;
      delay_done(slot, leg);
    }
  }

  void start_leg(std::size_t slot, std::uint32_t leg) {
    const double delay = running_[slot].plan->legs[leg].delay_s;
    if (delay <= 0) return delay_done(slot, leg);
    ++delays_;
    machine_.after(delay, token_of(Event::delay_done, slot, leg));
  }

  void delay_done(std::size_t slot, std::uint32_t index) {
    const CommPlan& plan = *running_[slot].plan;
    const Leg& leg = plan.legs[index];
    if (leg.bytes <= 0) return leg_done(slot, index);
    ++in_flight_;
    machine_.transfer(plan.host, plan.host, plan.links_of(leg), leg.bytes, token_of(Event::flow_done, slot, index));
  }

  void leg_done(std::size_t slot, std::uint32_t leg) {
    const CommPlan& plan = *running_[slot].plan;
    const bool last = --running_[slot].legs_left == 0;
    for (const std::uint32_t next : plan.released_by(plan.legs[leg])) {
      if (--running_[slot].waits[next] == 0) start_leg(slot, next);
    }
    if (!last) return;
    if (--running_[slot].repeats_left > 0) return start_round(slot);
    const OpId id = running_[slot].op;
    running_[slot].under_way = false;
    free_.push_back(slot);
    tell_contention(id, false);
    for_each_member(id, [&](OpId member) { finished_.push_back(member); });
  }

  void finish(OpId id) {
    steps_.back().end_s[id] = now();
    ++done_;
    if (progress_ && (++reported_ & 0xfffU) == 0)
      progress_(static_cast<double>(reported_) / (graph_.size() * setup_.job.system.simulation.steps));
    for (const OpId next : graph_.successors_of(id)) {
      if (++met_[next] == graph_.in_degree(next)) arrive(next);
    }
  }

  [[noreturn]] void report_stuck() const {
    std::string message = "the simulation stopped with " + std::to_string(graph_.size() - done_) + " of " + std::to_string(graph_.size()) +
                          " operations unfinished; waiting first:";
    int listed = 0;
    for (OpId id = 0; id < graph_.size() && listed < 5; ++id) {
      if (std::isfinite(steps_.back().end_s[id]) || met_[id] == graph_.in_degree(id)) continue;
      const Op op = graph_.op(id);
      message += " rank " + std::to_string(graph_.ranks[op.rank].rank) + " '" + graph_.labels[op.label] + "'";
      ++listed;
    }
    throw std::runtime_error(message);
  }

  const ExecutorSetup& setup_;
  const StepGraph& graph_;
  Machine& machine_;
  const Progress& progress_;
  Contention contention_;
  Spells spells_;
  std::vector<Execution> steps_;
  double step_start_s_ = 0;
  std::size_t done_ = 0;
  std::size_t reported_ = 0;
  std::size_t in_flight_ = 0, delays_ = 0;  // activities and delays that will end
  std::vector<std::uint16_t> met_;          // [op] dependencies that have ended
  std::vector<std::uint32_t> present_;      // [joint] members that have arrived
  std::vector<OpId> finished_;
  std::vector<Running> running_;
  std::vector<std::size_t> free_;
  std::vector<bool> dead_, cut_off_;  // [simulated rank]
};

}  // namespace

std::vector<Execution> execute(const ExecutorSetup& setup, Machine& machine, const Progress& progress) {
  return Executor(setup, machine, progress).run();
}

}  // namespace rehearse::sim
