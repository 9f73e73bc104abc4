#include "sim/engine/executor.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "sim/engine/contention.hpp"

namespace rehearse::sim {
namespace {

using workloads::Op;
using workloads::OpId;
using workloads::OpKind;
using workloads::StepGraph;

// What a token stands for: the kind in the upper bits, then the communication's slot and the leg, or the operation.
enum class Event : Token { compute_done, delay_done, flow_done };
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
  std::vector<std::uint32_t> waits;
};

class Executor {
 public:
  Executor(const ExecutorSetup& setup, Machine& machine, const Progress& progress)
      : setup_(setup),
        graph_(setup.graph),
        machine_(machine),
        progress_(progress),
        contention_(setup.job.gpu, setup.graph.ranks.size(), setup.port_links, setup.hosts, machine) {}

  std::vector<Execution> run() {
    // The first operations are started from inside the run, like all others.
    machine_.after(0, token_of(Event::compute_done, slot_mask, 0));
    machine_.run([this](Token token) { on(token); });
    if (done_ != graph_.ops.size()) report_stuck();
    return std::move(steps_);
  }

 private:
  void begin_step() {
    const std::size_t n = graph_.ops.size();
    step_start_s_ = machine_.now();
    done_ = 0;
    missing_ = graph_.in_degree;
    absent_.clear();
    for (const workloads::Joint& joint : graph_.joints) absent_.push_back(joint.members.size());
    Execution& step = steps_.emplace_back();
    step.arrive_s.assign(n, 0);
    step.start_s.assign(n, 0);
    step.end_s.assign(n, 0);
    for (OpId id = 0; id < n; ++id) {
      if (graph_.in_degree[id] == 0) arrive(id);
    }
    settle();
  }

  void on(Token token) {
    const auto event = static_cast<Event>(token >> event_shift);
    const std::uint64_t slot = (token >> slot_shift) & slot_mask;
    const auto low = static_cast<std::uint32_t>(token);
    switch (event) {
      case Event::compute_done:
        if (slot == slot_mask) return begin_step();
        contention_.compute_ends(graph_.ops[low].rank);
        finished_.push_back(low);
        break;
      case Event::delay_done:
        delay_done(slot, low);
        break;
      case Event::flow_done:
        leg_done(slot, low);
        break;
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
    if (done_ == graph_.ops.size()) end_step();
  }

  void end_step() {
    Execution& step = steps_.back();
    step.step_s = step_length(graph_, step);
    done_ = 0;
    if (static_cast<int>(steps_.size()) < setup_.job.simulation.steps) return begin_step();
    done_ = graph_.ops.size();
  }

  [[nodiscard]] double now() const { return machine_.now() - step_start_s_; }

  void arrive(OpId id) {
    const Op& op = graph_.ops[id];
    steps_.back().arrive_s[id] = now();
    switch (op.kind) {
      case OpKind::compute:
        return start_compute(id);
      case OpKind::p2p:
      case OpKind::copy:
        return start_communication(id, op.item);
      case OpKind::collective:
        if (--absent_[op.joint] > 0) return;
        const OpId first = graph_.joints[op.joint].members.front();
        return start_communication(first, graph_.ops[first].item);
    }
  }

  void start_compute(OpId id) {
    const Op& op = graph_.ops[id];
    steps_.back().start_s[id] = now();
    const double seconds = setup_.prices.work_s[op.item];
    if (seconds <= 0) return finished_.push_back(id);
    contention_.compute_starts(op.rank);
    machine_.compute(setup_.hosts[op.rank], seconds, token_of(Event::compute_done, 0, id));
  }

  // The operations that a communication is, on all ranks it involves.
  template <class Visit>
  void for_each_member(OpId id, Visit visit) const {
    const Op& op = graph_.ops[id];
    if (op.kind != OpKind::collective) return visit(id);
    for (const OpId member : graph_.joints[op.joint].members) visit(member);
  }

  void tell_contention(OpId id, bool starts) {
    const CallPrice& price = setup_.prices.calls[graph_.ops[id].item];
    const auto tell = [&](std::uint32_t rank, workloads::Purpose purpose) {
      starts ? contention_.communication_starts(rank, purpose, price) : contention_.communication_ends(rank, purpose, price);
    };
    for_each_member(id, [&](OpId member) { tell(graph_.ops[member].rank, graph_.ops[member].purpose); });
    if (graph_.ops[id].kind == OpKind::p2p && graph_.receiver[id] != graph_.ops[id].rank) tell(graph_.receiver[id], graph_.ops[id].purpose);
  }

  void start_communication(OpId id, std::uint32_t call) {
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
    running_[slot].repeats_left = setup_.plans[call].repeat;
    start_round(slot);
  }

  void start_round(std::size_t slot) {
    const CommPlan& plan = *running_[slot].plan;
    running_[slot].legs_left = plan.legs.size();
    running_[slot].waits.clear();
    for (const Leg& leg : plan.legs) running_[slot].waits.push_back(leg.waits_for);
    for (std::uint32_t leg = 0; leg < plan.legs.size(); ++leg) {
      if (plan.legs[leg].waits_for == 0) start_leg(slot, leg);
    }
  }

  void start_leg(std::size_t slot, std::uint32_t leg) {
    const double delay = running_[slot].plan->legs[leg].delay_s;
    if (delay <= 0) return delay_done(slot, leg);
    machine_.after(delay, token_of(Event::delay_done, slot, leg));
  }

  void delay_done(std::size_t slot, std::uint32_t index) {
    const CommPlan& plan = *running_[slot].plan;
    const Leg& leg = plan.legs[index];
    if (leg.bytes <= 0) return leg_done(slot, index);
    machine_.transfer(leg.from, leg.to, plan.links_of(leg), leg.bytes, token_of(Event::flow_done, slot, index));
  }

  void leg_done(std::size_t slot, std::uint32_t leg) {
    const CommPlan& plan = *running_[slot].plan;
    const bool last = --running_[slot].legs_left == 0;
    for (const std::uint32_t next : plan.legs[leg].releases) {
      if (--running_[slot].waits[next] == 0) start_leg(slot, next);
    }
    if (!last) return;
    if (--running_[slot].repeats_left > 0) return start_round(slot);
    const OpId id = running_[slot].op;
    free_.push_back(slot);
    tell_contention(id, false);
    for_each_member(id, [&](OpId member) { finished_.push_back(member); });
  }

  void finish(OpId id) {
    steps_.back().end_s[id] = now();
    ++done_;
    if (progress_ && (++reported_ & 0xfffU) == 0)
      progress_(static_cast<double>(reported_) / (graph_.ops.size() * setup_.job.simulation.steps));
    for (const OpId next : graph_.successors_of(id)) {
      if (--missing_[next] == 0) arrive(next);
    }
  }

  [[noreturn]] void report_stuck() const {
    std::string message = "the simulation stopped with " + std::to_string(graph_.ops.size() - done_) + " of " +
                          std::to_string(graph_.ops.size()) + " operations unfinished; waiting first:";
    int listed = 0;
    for (OpId id = 0; id < graph_.ops.size() && listed < 5; ++id) {
      if (steps_.back().end_s[id] > 0 || missing_[id] == 0) continue;
      const Op& op = graph_.ops[id];
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
  std::vector<Execution> steps_;
  double step_start_s_ = 0;
  std::size_t done_ = 0;
  std::size_t reported_ = 0;
  std::vector<std::uint32_t> missing_;
  std::vector<std::size_t> absent_;
  std::vector<OpId> finished_;
  std::vector<Running> running_;
  std::vector<std::size_t> free_;
};

}  // namespace

std::vector<Execution> execute(const ExecutorSetup& setup, Machine& machine, const Progress& progress) {
  return Executor(setup, machine, progress).run();
}

}  // namespace rehearse::sim
