#include "sim/analytic/unit_walk.hpp"

#include <algorithm>
#include <type_traits>
#include <vector>

#include "sim/analytic/rhythm.hpp"
#include "workloads/offload.hpp"

namespace rehearse::sim {
namespace {

using workloads::Slot;

// A stage whose activations move to the host and back: its units in the order in which it works on them, each with the copies that it waits
// for.
class CopyingStage {
 public:
  CopyingStage(const workloads::Workload& workload, const workloads::Compiled& compiled, const StageTerms& terms, const ReplicaRules& rules,
               const ContentionPair& copies, int stage)
      : terms_(terms), rules_(rules), pair_(copies), exchange_(rules) {
    workloads::PipelineShape shape = compiled.shape;
    shape.microbatches = workload.microbatches();
    turns_ = workloads::unit_turns(compiled.schedule->order(shape, stage), compiled.stages[stage]);
    plan_copies(compiled.stages[stage]);
    exchange_.begin(unit_at(0), unit_at(1));
  }

  // The next slot, whose input is there at `ready`: when it ends. first_s: when it begins.
  double slot(const SlotOrder::End& slot, double ready, double& first_s) {
    const std::size_t units = terms_.chunks[slot.chunk].size();
    if (units == 0) wait(ready);
    first_s = now_s();
    const bool last = exchange_.reduces_last() && units > 0 && completes(next_, next_ + units);
    for (std::size_t k = 0; k < units; ++k) {
      const double begin = turn(next_++, last, k == 0 ? ready : now_s());
      if (k == 0) first_s = begin;
    }
    return now_s();
  }
  void wait(double until) { exchange_.pass_until(until); }
  double message(double seconds, bool to_next) { return exchange_.message(seconds, to_next ? terms_.to_next : terms_.to_last); }
  void end() { exchange_.end(); }
  [[nodiscard]] double now_s() const { return exchange_.now(); }
  [[nodiscard]] double copies_s() const { return copies_s_; }
  [[nodiscard]] double exchanged_s() const { return exchange_.exchanged_s(); }

 private:
  [[nodiscard]] const UnitTerms& unit(std::size_t i) const { return *terms_.chunks[turns_[i].slot.chunk][turns_[i].unit]; }
  [[nodiscard]] GatheredTurn unit_at(std::size_t i) const {
    return i < turns_.size() ? GatheredTurn{&unit(i), turns_[i].slot.kind} : GatheredTurn{};
  }

  // Whether no turn from `later` on adds to the gradients of a turn's chunk.
  [[nodiscard]] bool completes(std::size_t turn, std::size_t later) const {
    const int chunk = turns_[turn].slot.chunk;
    return std::none_of(turns_.begin() + static_cast<std::ptrdiff_t>(later), turns_.end(), [&](const workloads::UnitTurn& each) {
      return each.slot.chunk == chunk && UnitExchange::makes_gradients(each.slot.kind);
    });
  }

  void plan_copies(const workloads::StageProgram& program) {
    moves_ = workloads::offloading(turns_, program);
    forward_.resize(turns_.size());
    end_s_.resize(turns_.size());
    left_s_.resize(turns_.size());
    back_s_.assign(turns_.size(), -1);
    std::vector<std::size_t> first_unit{0};  // [chunk] of the stage
    for (const auto& chunk : program.chunks) first_unit.push_back(first_unit.back() + chunk.size());
    const std::size_t units = first_unit.back();
    std::vector<std::size_t> forward;  // [micro-batch, unit of the stage]
    for (std::size_t i = 0; i < turns_.size(); ++i) {
      const auto& [slot, unit] = turns_[i];
      const std::size_t place = static_cast<std::size_t>(slot.microbatch) * units + first_unit[slot.chunk] + static_cast<std::size_t>(unit);
      if (place >= forward.size()) forward.resize(place + 1);
      if (slot.kind == Slot::Kind::forward) forward[place] = i;
      if (moves_.come_back[i]) forward_[i] = forward[place];
    }
  }

  // When its first unit can begin.
  double turn(std::size_t i, bool completes, double ready) {
    const Slot::Kind kind = turns_[i].slot.kind;
    exchange_.ask(unit(i), kind);
    wait(ready);
    const double asked = now_s();
    wait(copied_s(i));
    const double start = now_s(), begin = exchange_.work(unit(i), kind);
    copy(i, asked, start);
    exchange_.follow(unit(i), kind, completes, unit_at(i + 2));
    return begin;
  }

  // When a turn's activations are there, and those of the turn before the last away.
  double copied_s(std::size_t i) {
    bring(i);
    bring(i + 1);
    double start = moves_.come_back[i] ? back_s_[i] : 0;
    if (i >= 2 && moves_.leave[i - 2]) start = std::max(start, left_s_[i - 2]);
    return start;
  }

  void copy(std::size_t i, double asked, double start) {
    const double own = now_s() - start;
    exchange_.pass(std::max(0.0, beside_copies_s(i, start, own) - own));
    copies_s_ += std::max(0.0, now_s() - asked - own);  // nothing, up to rounding, where none is beside
    end_s_[i] = now_s();
    if (moves_.leave[i]) left_s_[i] = out_s_ = std::max(out_s_, end_s_[i]) + unit(i).copy_s;
  }

  // Computation of a turn, and its calls where they go over the port of the copies beside it.
  [[nodiscard]] ContentionPair meets_copies(std::size_t i, const UnitTerms& copied) const {
    if (!rules_.ports_meet || copied.cost->copy_ports.scale_up_s <= 0) return pair_;
    return of_a_pass(unit(i).pass(turns_[i].slot.kind).parts, pair_, copied.cost->copy_ports, copied.copy_s);
  }

  // Those of its neighbours are under way: they slow the unit down, and it slows them. None goes on beside the unit after it.
  double beside_copies_s(std::size_t i, double start, double own) {
    const bool out = i >= 1 && moves_.leave[i - 1], in = i + 1 < turns_.size() && moves_.come_back[i + 1];
    const double leaves = out ? std::max(0.0, left_s_[i - 1] - start) : 0;
    const double returns = in ? std::clamp(back_s_[i + 1] - start, 0.0, unit(i + 1).copy_s) : 0;
    if (leaves <= 0 && returns <= 0) return own;
    const ContentionPair pair = meets_copies(i, unit(leaves > 0 ? i - 1 : i + 1));
    const double beside = pair.beta * std::max(leaves, returns);
    const double seconds = beside <= pair.alpha * own ? own + beside * (1 - 1 / pair.alpha) : pair.alpha * own;
    const auto slowed = [&](double copy) { return std::min(copy * (pair.beta - 1), seconds * (1 - 1 / pair.beta)); };
    if (out) out_s_ = left_s_[i - 1] += slowed(leaves);
    if (in) in_s_ = back_s_[i + 1] += slowed(returns);
    return seconds;
  }

  // As soon as the turn before it may start.
  void bring(std::size_t i) {
    if (i >= turns_.size() || !moves_.come_back[i] || back_s_[i] >= 0) return;
    double from = std::max(in_s_, left_s_[forward_[i]]);
    if (i >= 2) from = std::max(from, end_s_[i - 2]);
    if (i >= 3 && moves_.leave[i - 3]) from = std::max(from, left_s_[i - 3]);
    back_s_[i] = in_s_ = from + unit(i).copy_s;
  }

  const StageTerms& terms_;
  const ReplicaRules& rules_;
  const ContentionPair& pair_;
  UnitExchange exchange_;
  std::vector<workloads::UnitTurn> turns_;
  workloads::Offloading moves_;
  std::vector<std::size_t> forward_;             // [turn that needs activations back] the one that left them
  std::vector<double> end_s_, left_s_, back_s_;  // [turn]
  double out_s_ = 0, in_s_ = 0, copies_s_ = 0;
  std::size_t next_ = 0;
};

template <class Stage>
class UnitWalk {
 public:
  UnitWalk(const SlotOrder& order, std::vector<Stage> stages, const std::vector<double>& hop_s, bool blocking, WalkRoom& room)
      : stages_(std::move(stages)), hop_s_(hop_s), blocking_(blocking), arrived_s_(room.arrived_s), free_s_(room.free_s) {
    // Every message is sent before it is waited for; number 0 is none.
    arrived_s_.resize(order.messages());
    arrived_s_.front() = 0;
    free_s_.assign(2 * stages_.size(), 0.0);
    StageSpans& spans = result_.spans;
    spans.start_s.assign(stages_.size(), 0.0);
    spans.end_s.assign(stages_.size(), 0.0);
    spans.completed_s.lay_out(stages_.size(), static_cast<std::size_t>(order.shape().chunks));
    if constexpr (std::is_same_v<Stage, WalkedStage>) {
      follow(order, *this);
    } else {
      for (const SlotOrder::Step& each : order.round()) step(each);  // all of them
    }
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      stages_[s].end();
      spans.end_s[s] = stages_[s].now_s();
      result_.copies_s.push_back(stages_[s].copies_s());
      result_.exchanged_s.push_back(stages_[s].exchanged_s());
    }
  }
  UnitSpans result() && { return std::move(result_); }

  void step(const SlotOrder::Step& step) {
    Stage& stage = stages_[step.stage];
    StageSpans& spans = result_.spans;
    const double ready = std::max(arrived_s_[step.slot.in], step.paired ? arrived_s_[step.other.in] : 0);
    if (step.slot.in != 0) stage.message(hop_s_[step.slot.hop_in], step.slot.hop_in == step.stage);
    if (step.other.in != 0) stage.message(hop_s_[step.other.hop_in], step.other.hop_in == step.stage);
    double begin = 0, unused = 0;
    double end = stage.slot(step.slot, ready, begin);
    if (step.paired) end = stage.slot(step.other, 0, unused);
    if (step.starts) spans.start_s[step.stage] = begin;
    end = leave(step, step.slot, end);
    if (step.paired) leave(step, step.other, end);
  }

  std::vector<double>& arrived_s() { return arrived_s_; }
  void look(const SlotOrder& order, std::vector<double>& at) {
    at.clear();
    for (const WalkedStage& stage : stages_) {
      stage.look(at);
      exchanged_s_.push_back(stage.exchanged_s());
    }
    for (const std::uint32_t stream : order.streams()) at.push_back(free_s_[stream]);
    for (const std::uint32_t message : order.under_way()) at.push_back(arrived_s_[message]);
  }
  void skip(const Rhythm::Beat& beat, int beats) {
    const double by = beat.s * beats;
    const std::size_t now = exchanged_s_.size() - stages_.size(), before = now - static_cast<std::size_t>(beat.rounds) * stages_.size();
    for (std::size_t s = 0; s < stages_.size(); ++s)
      stages_[s].skip(beats, beats * beat.rounds, by, exchanged_s_[before + s], exchanged_s_[now + s]);
    for (std::vector<double>* all : {&free_s_, &arrived_s_, &result_.spans.completed_s.all()}) {
      for (double& at : *all) at += by;
    }
    arrived_s_.front() = 0;
  }

 private:
  // When the stage can go on after a slot that ends then.
  double leave(const SlotOrder::Step& step, const SlotOrder::End& slot, double end) {
    Stage& stage = stages_[step.stage];
    if (slot.completes()) result_.spans.completed_s[step.stage][slot.chunk] = end;
    if (slot.out == 0) return end;
    double& free = free_s_[step.stream(slot)];
    const double hop_s = hop_s_[slot.hop];
    arrived_s_[slot.out] = free = std::max(free, end) + hop_s + stage.message(hop_s, slot.hop == step.stage);
    if (blocking_) stage.wait(free);
    return std::max(end, stage.now_s());
  }

  std::vector<Stage> stages_;
  const std::vector<double>& hop_s_;
  bool blocking_;
  std::vector<double>&arrived_s_, &free_s_;  // [message]; [stream]
  std::vector<double> exchanged_s_;          // [round, stage]
  UnitSpans result_;
};

}  // namespace

bool walks_units(const workloads::Workload& workload, const ReplicaRules& rules) {
  return workload.offload_activations || (rules.exchanges_each() && (rules.sync.overlap_gradients || rules.sync.overlap_parameters));
}

UnitSpans UnitWalks::walk(const workloads::Workload& workload, const workloads::Compiled& compiled, std::span<const StageTerms> stages,
                          const ReplicaRules& rules, const ContentionPair& copies, const std::vector<double>& hop_s,
                          const SlotOrder& order) {
  const bool blocking = stages.size() > 1 && !workload.overlap.pp;
  const auto walked = [&](const SlotOrder& slots, auto all) { return UnitWalk(slots, std::move(all), hop_s, blocking, room_).result(); };
  if (workload.offload_activations) {
    std::vector<CopyingStage> all;
    for (std::size_t s = 0; s < stages.size(); ++s) all.emplace_back(workload, compiled, stages[s], rules, copies, static_cast<int>(s));
    return walked(SlotOrder::in_full(workload), std::move(all));
  }
  std::vector<WalkedStage> all;
  all.reserve(stages.size());
  const UnitExchange exchange(rules);
  const std::span<const KnownSlots::OfStage> numbers = known_.place(order, stages, exchange);
  for (std::size_t s = 0; s < stages.size(); ++s) all.emplace_back(stages[s], exchange, order.works(s), numbers[s], known_);
  return walked(order, std::move(all));
}

const UnitSpans& UnitWalks::without_messages(const workloads::Workload& workload, const workloads::Compiled& compiled,
                                             std::span<const StageTerms> stages, const ReplicaRules& rules, const ContentionPair& copies,
                                             const SlotOrder& order) {
  if (!instant_ || instant_order_ != &order || workload.offload_activations) {
    instant_ = walk(workload, compiled, stages, rules, copies, std::vector<double>(stages.size(), 0.0), order);
    instant_order_ = &order;
  }
  return *instant_;
}

}  // namespace rehearse::sim
