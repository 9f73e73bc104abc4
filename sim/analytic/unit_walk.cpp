#include "sim/analytic/unit_walk.hpp"

#include <algorithm>
#include <vector>

#include "sim/analytic/rhythm.hpp"
#include "sim/analytic/two_streams.hpp"
#include "workloads/offload.hpp"

namespace rehearse::sim {
namespace {

using workloads::Slot;

// A stage's units in the order in which it works on them, each with the gathers and copies that it waits for.
class WalkedStage {
 public:
  WalkedStage(const workloads::Workload& workload, const workloads::Compiled& compiled, const StageTerms& terms, const ReplicaRules& rules,
              const ContentionPair& copies, int stage)
      : terms_(terms),
        rules_(rules),
        pair_(copies),
        gathers_(rules.gathers_each()),
        reduces_(rules.reduces_each()),
        offloads_(workload.offload_activations),
        streams_(rules.pair, -rules.overhead_s) {
    workloads::PipelineShape shape = compiled.shape;
    shape.microbatches = workload.microbatches();
    turns_ = workloads::unit_turns(compiled.schedule->order(shape, stage), compiled.stages[stage]);
    if (offloads_) plan_copies(compiled.stages[stage]);
    if (gathers_ahead()) {
      gather(0);
      gather(1);
    }
    streams_.compute(rules.overhead_s);
    streams_.pass_until(0);
  }

  // The next slot, whose input is there at `ready`: when it ends. first_s: when it begins.
  double slot(std::size_t chunk, double ready, double& first_s) {
    const std::size_t units = terms_.chunks[chunk].size();
    if (units == 0) wait(ready);
    first_s = streams_.now();
    for (std::size_t k = 0; k < units; ++k) {
      const double begin = turn(next_++, k == 0 ? ready : streams_.now());
      if (k == 0) first_s = begin;
    }
    return streams_.now();
  }
  void wait(double until) { streams_.pass_until(until); }
  // What its next slots depend on but for copies.
  void look(std::vector<double>& instants) const {
    const auto sent_s = [&](double mark) { return streams_.now() + streams_.left(mark); };
    for (const double instant : {streams_.now(), streams_.now() + streams_.backlog(), sent_s(reduced_), sent_s(gathered_[next_ % 2]),
                                 sent_s(gathered_[(next_ + 1) % 2])})
      instants.push_back(instant);
  }
  struct Done {
    std::size_t turns = 0;
    double exchanged_s = 0;
  };
  [[nodiscard]] Done done() const { return {next_, exchanged_s_}; }
  // What it did between two instants so many times more, all of it in so many seconds.
  void skip(const Done& from, const Done& to, int times, double seconds) {
    const std::size_t turns = (to.turns - from.turns) * static_cast<std::size_t>(times);
    streams_.skip(seconds, 0);
    if (turns % 2 == 1) std::swap(gathered_[0], gathered_[1]);
    next_ += turns;
    exchanged_s_ += times * (to.exchanged_s - from.exchanged_s);
  }
  void end() { wait_for(reduced_); }
  [[nodiscard]] double now_s() const { return streams_.now(); }
  [[nodiscard]] double copies_s() const { return copies_s_; }
  [[nodiscard]] double exchanged_s() const { return exchanged_s_; }

 private:
  [[nodiscard]] const UnitTerms& unit(std::size_t i) const { return *terms_.chunks[turns_[i].slot.chunk][turns_[i].unit]; }
  [[nodiscard]] bool gathers_ahead() const { return gathers_ && rules_.sync.overlap_parameters; }

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

  // When its first unit can begin, with the gather that nothing but the stack's own time runs beside.
  double turn(std::size_t i, double ready) {
    if (gathers_ && !gathers_ahead()) gather(i);
    wait(ready);
    const double asked = streams_.now();
    if (offloads_) wait(copied_s(i));
    const double start = streams_.now();
    if (gathers_) streams_.wait(gathered_[i % 2]);
    const double begin = streams_.now() - lead_s(i), alone = work(i);
    exchanged_s_ += streams_.now() - start - alone;
    if (offloads_) copy(i, asked, start);
    reduce(i);
    if (gathers_ahead()) gather(i + 2);
    return begin;
  }

  [[nodiscard]] double lead_s(std::size_t i) const {
    if (!gathers_) return 0;
    return gathers_ahead() ? std::max(0.0, unit(i).gather_s - rules_.overhead_s) : unit(i).gather_s;
  }

  // Seconds that it takes alone.
  double work(std::size_t i) {
    const MetPass& pass = unit(i).pass(turns_[i].slot.kind);
    streams_.work(pass);
    return pass.parts.compute_s + pass.parts.calls_s;
  }

  // Of the parameters of a turn.
  void gather(std::size_t i) {
    if (i < turns_.size()) gathered_[i % 2] = streams_.queue(unit(i).gather_s);
  }

  void reduce(std::size_t i) {
    const Slot::Kind kind = turns_[i].slot.kind;
    if (!reduces_ || (kind != Slot::Kind::backward && kind != Slot::Kind::backward_weight)) return;
    reduced_ = streams_.queue(unit(i).reduce_s);
    if (!rules_.sync.overlap_gradients) wait_for(reduced_);
  }

  void wait_for(double mark) {
    const double before = streams_.now();
    streams_.wait(mark);
    exchanged_s_ += streams_.now() - before;
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
    const double own = streams_.now() - start;
    streams_.pass(std::max(0.0, beside_copies_s(i, start, own) - own));
    copies_s_ += std::max(0.0, streams_.now() - asked - own);  // nothing, up to rounding, where none is beside
    end_s_[i] = streams_.now();
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
  bool gathers_, reduces_, offloads_;
  TwoStreams streams_;
  std::vector<workloads::UnitTurn> turns_;
  workloads::Offloading moves_;
  std::vector<std::size_t> forward_;             // [turn that needs activations back] the one that left them
  std::vector<double> end_s_, left_s_, back_s_;  // [turn]
  double gathered_[2] = {0, 0}, reduced_ = 0, out_s_ = 0, in_s_ = 0;
  double copies_s_ = 0, exchanged_s_ = 0;
  std::size_t next_ = 0;
};

class UnitWalk {
 public:
  UnitWalk(const SlotOrder& order, std::vector<WalkedStage> stages, const std::vector<double>& hop_s, bool blocking)
      : stages_(std::move(stages)), hop_s_(hop_s), blocking_(blocking), arrived_s_(order.messages()), free_s_(2 * stages_.size()) {
    StageSpans& spans = result_.spans;
    spans.start_s.assign(stages_.size(), 0.0);
    spans.end_s.assign(stages_.size(), 0.0);
    spans.completed_s.lay_out(stages_.size(), static_cast<std::size_t>(order.shape().chunks));
    follow(order, *this);
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      stages_[s].end();
      spans.end_s[s] = stages_[s].now_s();
      result_.copies_s.push_back(stages_[s].copies_s());
      result_.exchanged_s.push_back(stages_[s].exchanged_s());
    }
  }
  UnitSpans result() && { return std::move(result_); }

  void step(const SlotOrder::Step& step) {
    WalkedStage& stage = stages_[step.stage];
    StageSpans& spans = result_.spans;
    const double ready = std::max(arrived_s_[step.slot.in], step.paired ? arrived_s_[step.other.in] : 0);
    double begin = 0, unused = 0;
    double end = stage.slot(step.slot.chunk, ready, begin);
    if (step.paired) end = stage.slot(step.other.chunk, 0, unused);
    if (step.starts) spans.start_s[step.stage] = begin;
    for (const SlotOrder::End* slot : {&step.slot, &step.other}) {
      if (slot == &step.other && !step.paired) break;
      if (slot->completes()) spans.completed_s[step.stage][slot->chunk] = end;
      if (slot->out == 0) continue;
      double& free = free_s_[step.stream(*slot)];
      arrived_s_[slot->out] = free = std::max(free, end) + hop_s_[slot->hop];
      if (blocking_) stage.wait(free);
      end = std::max(end, stage.now_s());
    }
  }

  void renumber(std::size_t messages) {
    std::copy(arrived_s_.begin() + 1 + static_cast<std::ptrdiff_t>(messages), arrived_s_.end(), arrived_s_.begin() + 1);
  }
  void look(const SlotOrder& order, std::vector<double>& at) {
    at.clear();
    std::vector<WalkedStage::Done>& done = done_.emplace_back();
    for (const WalkedStage& stage : stages_) {
      stage.look(at);
      done.push_back(stage.done());
    }
    for (const std::uint32_t stream : order.streams()) at.push_back(free_s_[stream]);
    for (const std::uint32_t message : order.under_way()) at.push_back(arrived_s_[message]);
  }
  void skip(const Rhythm::Beat& beat, int beats) {
    const double by = beat.s * beats;
    const std::vector<WalkedStage::Done>& before = done_[done_.size() - 1 - static_cast<std::size_t>(beat.rounds)];
    for (std::size_t s = 0; s < stages_.size(); ++s) stages_[s].skip(before[s], done_.back()[s], beats, by);
    for (std::vector<double>* all : {&free_s_, &arrived_s_, &result_.spans.completed_s.all()}) {
      for (double& at : *all) at += by;
    }
    arrived_s_.front() = 0;
  }

 private:
  std::vector<WalkedStage> stages_;
  const std::vector<double>& hop_s_;
  bool blocking_;
  std::vector<double> arrived_s_, free_s_;            // [message]; [stream]
  std::vector<std::vector<WalkedStage::Done>> done_;  // [round][stage]
  UnitSpans result_;
};

}  // namespace

bool walks_units(const workloads::Workload& workload, const ReplicaRules& rules) {
  return workload.offload_activations || (rules.reduces_each() && (rules.sync.overlap_gradients || rules.sync.overlap_parameters));
}

UnitSpans walk_units(const workloads::Workload& workload, const workloads::Compiled& compiled, std::span<const StageTerms> stages,
                     const ReplicaRules& rules, const ContentionPair& copies, const std::vector<double>& hop_s, const SlotOrder& order) {
  std::vector<WalkedStage> all;
  all.reserve(stages.size());
  for (std::size_t s = 0; s < stages.size(); ++s) all.emplace_back(workload, compiled, stages[s], rules, copies, static_cast<int>(s));
  const bool blocking = stages.size() > 1 && !workload.overlap.pp;
  return UnitWalk(workload.offload_activations ? SlotOrder::in_full(workload) : order, std::move(all), hop_s, blocking).result();
}

}  // namespace rehearse::sim
