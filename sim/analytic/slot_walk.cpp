#include "sim/analytic/slot_walk.hpp"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <stdexcept>

#include "workloads/schedule.hpp"

namespace rehearse::sim {
namespace {

using workloads::Location;
using workloads::Slot;

class Walk {
 public:
  Walk(const workloads::Workload& workload, const PipelineTimes& times)
      : workload_(workload),
        times_(times),
        schedule_(workloads::ScheduleRegistry::get(workload.schedule)),
        shape_(workloads::pipeline_shape(workload)),
        spans_(shape_.stages),
        next_(shape_.stages),
        arrivals_(2UL * shape_.stages * shape_.chunks * shape_.microbatches, -1),
        streams_free_(2UL * shape_.stages) {
    for (int s = 0; s < shape_.stages; ++s) orders_.push_back(workloads::slots_of(workload, s));
    for (StageSpan& span : spans_) span.completed_s.resize(static_cast<std::size_t>(shape_.chunks));
  }

  std::vector<StageSpan> spans() {
    for (bool moved = true; moved;) {
      moved = false;
      for (int s = 0; s < shape_.stages; ++s) {
        while (next_[s] < orders_[s].size() && step(s)) moved = true;
      }
    }
    for (int s = 0; s < shape_.stages; ++s) {
      if (next_[s] < orders_[s].size()) throw std::logic_error("the schedule deadlocks");
    }
    return std::move(spans_);
  }

 private:
  // When the message of a slot has come; negative: not yet.
  double& arrival(int stage, const Slot& slot) {
    const std::size_t direction = slot.kind == Slot::Kind::forward ? 0 : 1;
    return arrivals_[((direction * shape_.stages + stage) * shape_.chunks + slot.chunk) * shape_.microbatches + slot.microbatch];
  }

  // When the slot has all that it needs from other stages; nothing while that is unknown.
  std::optional<double> ready_s(int stage, const Slot& slot) {
    if (!workloads::source_of(schedule_, shape_, stage, slot)) return 0;
    const double at = arrival(stage, slot);
    return at < 0 ? std::nullopt : std::optional(at);
  }

  bool step(int stage) {
    const Slot& slot = orders_[stage][next_[stage]];
    const Slot* other = slot.paired ? &orders_[stage][next_[stage] + 1] : nullptr;
    const std::optional<double> ready = ready_s(stage, slot), also = other != nullptr ? ready_s(stage, *other) : 0;
    if (!ready || !also) return false;
    const PairTimes pair = other != nullptr ? pair_of(stage, slot, *other) : PairTimes{.seconds = seconds(stage, slot)};
    const double lead = lead_s(stage, slot), start = std::max({spans_[stage].end_s + lead, *ready - pair.first_late_s, *also});
    if (next_[stage] == 0) spans_[stage].start_s = start;
    double end = start - lead + pair.seconds;
    end = std::max(
        {end, send(stage, slot, end - pair.first_early_s), other != nullptr ? send(stage, *other, end - pair.second_early_s) : end});
    spans_[stage].end_s = end;
    for (const Slot* done : {&slot, other}) {
      const bool adds = done != nullptr && (done->kind == Slot::Kind::backward || done->kind == Slot::Kind::backward_weight);
      if (adds) spans_[stage].completed_s[done->chunk] = end;
    }
    next_[stage] += other != nullptr ? 2 : 1;
    return true;
  }

  [[nodiscard]] double seconds(int stage, const Slot& slot) const {
    const double weight = times_.weight_s.empty() ? 0 : times_.weight_s[stage][slot.chunk];
    switch (slot.kind) {
      case Slot::Kind::forward:
        return times_.forward_s[stage][slot.chunk];
      case Slot::Kind::backward:
        return times_.whole_s.empty() ? times_.backward_s[stage][slot.chunk] + weight : times_.whole_s[stage][slot.chunk];
      case Slot::Kind::backward_input:
        return times_.backward_s[stage][slot.chunk];
      case Slot::Kind::backward_weight:
        break;
    }
    return weight;
  }

  // Of a pair the first slot's lead counts.
  [[nodiscard]] double lead_s(int stage, const Slot& slot) const {
    if (times_.lead_forward_s.empty() || slot.kind == Slot::Kind::backward_weight) return 0;
    return (slot.kind == Slot::Kind::forward ? times_.lead_forward_s : times_.lead_backward_s)[stage][slot.chunk];
  }

  [[nodiscard]] PairTimes pair_of(int stage, const Slot& forward, const Slot& backward) const {
    if (times_.pairs.empty()) return {.seconds = seconds(stage, forward) + seconds(stage, backward)};
    return times_.pairs[stage][forward.chunk][backward.chunk];
  }

  // Sends the output of a slot that ends at `end`; when the stage can go on.
  double send(int stage, const Slot& slot, double end) {
    const std::optional<Location> target = workloads::target_of(schedule_, shape_, stage, slot);
    if (!target) return end;
    const bool forward = slot.kind == Slot::Kind::forward;
    const bool around = std::abs(stage - target->stage) > 1;  // from the last stage to the first, or back
    const double hop = times_.hop_s[around ? shape_.stages - 1 : std::min(stage, target->stage)];
    const auto& early = forward ? times_.early_forward_s : times_.early_backward_s;
    double& free = streams_free_[2UL * stage + (forward ? 0 : 1)];  // messages of one direction follow one another
    free = std::max(free, end - (early.empty() ? 0 : early[stage][slot.chunk])) + hop;
    arrival(target->stage, {slot.kind, slot.microbatch, target->chunk}) = free;
    return times_.blocking ? std::max(end, free) : end;
  }

  const workloads::Workload& workload_;
  const PipelineTimes& times_;
  const workloads::Schedule& schedule_;
  workloads::PipelineShape shape_;
  std::vector<std::vector<Slot>> orders_;
  std::vector<StageSpan> spans_;
  std::vector<std::size_t> next_;
  std::vector<double> arrivals_, streams_free_;
};

}  // namespace

std::vector<StageSpan> walk_slots(const workloads::Workload& workload, const PipelineTimes& times) { return Walk(workload, times).spans(); }

}  // namespace rehearse::sim
