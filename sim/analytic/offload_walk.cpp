#include "sim/analytic/offload_walk.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "workloads/offload.hpp"

namespace rehearse::sim {
namespace {

using workloads::Slot;

// A stage's units in the order in which it works on them, each with the copies that it waits for.
class OffloadingStage {
 public:
  OffloadingStage(const workloads::Compiled& compiled, const StageTerms& terms, const ReplicaRules& rules, const ContentionPair& pair,
                  int stage)
      : terms_(terms),
        rules_(rules),
        pair_(pair),
        turns_(workloads::unit_turns(compiled.schedule->order(compiled.shape, stage), compiled.stages[stage])),
        moves_(workloads::offloading(turns_, compiled.stages[stage])),
        forward_(turns_.size()),
        end_s_(turns_.size()),
        left_s_(turns_.size()),
        back_s_(turns_.size(), -1) {
    std::map<std::tuple<int, int, int>, std::size_t> forward;
    for (std::size_t i = 0; i < turns_.size(); ++i) {
      const auto& [slot, unit] = turns_[i];
      if (slot.kind == Slot::Kind::forward) forward[{slot.chunk, slot.microbatch, unit}] = i;
      if (moves_.come_back[i]) forward_[i] = forward.at({slot.chunk, slot.microbatch, unit});
    }
  }

  // The next slot, whose input is there at `ready`: when it ends. first_s: when it begins.
  double slot(std::size_t chunk, double ready, double& first_s) {
    const std::size_t units = terms_.chunks[chunk].size();
    first_s = now_s_ = std::max(now_s_, ready - (units > 0 ? lead_s() : 0));
    for (std::size_t k = 0; k < units; ++k) turn(next_++);
    return now_s_;
  }
  void wait(double until) { now_s_ = std::max(now_s_, until); }
  [[nodiscard]] double now_s() const { return now_s_; }
  [[nodiscard]] double copies_s() const { return copies_s_; }

 private:
  [[nodiscard]] const UnitTerms& unit(std::size_t i) const { return *terms_.chunks[turns_[i].slot.chunk][turns_[i].unit]; }

  [[nodiscard]] double lead_s() const {
    return turns_[next_].slot.kind == Slot::Kind::backward_weight ? 0 : rules_.exposed_gather_s(unit(next_));
  }

  void turn(std::size_t i) {
    bring(i);
    bring(i + 1);
    double start = now_s_;
    if (moves_.come_back[i]) start = std::max(start, back_s_[i]);
    if (i >= 2 && moves_.leave[i - 2]) start = std::max(start, left_s_[i - 2]);
    const double own = unit(i).seconds(turns_[i].slot.kind) + unit(i).exposed(turns_[i].slot.kind);
    const double computed = beside_copies_s(i, start, own);
    end_s_[i] = start + computed;
    copies_s_ += std::max(0.0, end_s_[i] - now_s_ - own);  // nothing, up to rounding, where none is beside
    now_s_ = end_s_[i];
    if (moves_.leave[i]) left_s_[i] = out_s_ = std::max(out_s_, now_s_) + unit(i).cost->copy_s;
  }

  // Those of its neighbours are under way: they slow the unit down, and it slows them. None goes on beside the unit after it.
  double beside_copies_s(std::size_t i, double start, double own) {
    const bool out = i >= 1 && moves_.leave[i - 1], in = i + 1 < turns_.size() && moves_.come_back[i + 1];
    const double leaves = out ? std::max(0.0, left_s_[i - 1] - start) : 0;
    const double returns = in ? std::clamp(back_s_[i + 1] - start, 0.0, unit(i + 1).cost->copy_s) : 0;
    const double beside = pair_.beta * std::max(leaves, returns);
    const double seconds = beside <= pair_.alpha * own ? own + beside * (1 - 1 / pair_.alpha) : pair_.alpha * own;
    const auto slowed = [&](double copy) { return std::min(copy * (pair_.beta - 1), seconds * (1 - 1 / pair_.beta)); };
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
    back_s_[i] = in_s_ = from + unit(i).cost->copy_s;
  }

  const StageTerms& terms_;
  const ReplicaRules& rules_;
  const ContentionPair& pair_;
  std::vector<workloads::UnitTurn> turns_;
  workloads::Offloading moves_;
  std::vector<std::size_t> forward_;             // [turn that needs activations back] the one that left them
  std::vector<double> end_s_, left_s_, back_s_;  // [turn]
  double now_s_ = 0, out_s_ = 0, in_s_ = 0, copies_s_ = 0;
  std::size_t next_ = 0;
};

class OffloadedWalk {
 public:
  OffloadedWalk(const SlotOrder& order, std::vector<OffloadingStage> stages, const std::vector<double>& hop_s, bool blocking)
      : stages_(std::move(stages)), hop_s_(hop_s), blocking_(blocking), arrived_s_(order.messages()), free_s_(2 * stages_.size()) {
    StageSpans& spans = result_.spans;
    spans.start_s.assign(stages_.size(), 0.0);
    spans.end_s.assign(stages_.size(), 0.0);
    spans.completed_s.lay_out(stages_.size(), static_cast<std::size_t>(order.shape().chunks));
    for (const SlotOrder::Step& step : order.round()) this->step(step);
    for (const OffloadingStage& stage : stages_) result_.copies_s.push_back(stage.copies_s());
  }
  OffloadedSpans result() && { return std::move(result_); }

 private:
  void step(const SlotOrder::Step& step) {
    OffloadingStage& stage = stages_[step.stage];
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
    }
    spans.end_s[step.stage] = stage.now_s();
  }

  std::vector<OffloadingStage> stages_;
  const std::vector<double>& hop_s_;
  bool blocking_;
  std::vector<double> arrived_s_, free_s_;  // [message]; [stream]
  OffloadedSpans result_;
};

}  // namespace

OffloadedSpans walk_offloaded(const workloads::Workload& workload, const workloads::Compiled& compiled, std::span<const StageTerms> stages,
                              const ReplicaRules& rules, const ContentionPair& pair, const std::vector<double>& hop_s) {
  std::vector<OffloadingStage> all;
  for (std::size_t s = 0; s < stages.size(); ++s) all.emplace_back(compiled, stages[s], rules, pair, static_cast<int>(s));
  const bool blocking = stages.size() > 1 && !workload.overlap.pp;
  return OffloadedWalk(SlotOrder::in_full(workload), std::move(all), hop_s, blocking).result();
}

}  // namespace rehearse::sim
