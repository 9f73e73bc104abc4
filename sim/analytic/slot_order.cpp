#include "sim/analytic/slot_order.hpp"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <set>
#include <stdexcept>

namespace rehearse::sim {
namespace {

using workloads::PipelineShape;
using workloads::Slot;
using workloads::Workload;
using End = SlotOrder::End;
using Step = SlotOrder::Step;

// Stages take turns of a step each, as if all took equally long: so the order repeats itself as early as the pipeline does.
class Turns {
 public:
  explicit Turns(const Workload& workload)
      : schedule_(workloads::ScheduleRegistry::get(workload.schedule)), shape_(workloads::pipeline_shape(workload)) {
    for (int s = 0; s < shape_.stages; ++s) {
      orders_.push_back(workloads::slots_of(workload, s));
      ways_.emplace_back(schedule_, shape_, s);
    }
  }

  std::vector<Step> steps() {
    std::vector<Step> steps;
    std::size_t slots = 0;
    for (const std::vector<Slot>& order : orders_) slots += order.size();
    steps.reserve(slots);
    std::vector<std::size_t> next(orders_.size());
    std::vector<Step> heads;  // [stage] its next step
    heads.reserve(orders_.size());
    for (int s = 0; s < shape_.stages; ++s) heads.push_back(step_at(s, 0));
    std::vector<bool> sent(2UL * shape_.stages * shape_.chunks * shape_.microbatches + 1);
    sent[0] = true;
    for (bool moved = true; moved;) {
      moved = false;
      for (int s = 0; s < shape_.stages; ++s) {
        Step& head = heads[s];
        if (next[s] == orders_[s].size() || !sent[head.slot.in] || !sent[head.other.in]) continue;
        steps.push_back(head);
        sent[head.slot.out] = sent[head.other.out] = true;
        next[s] += head.paired ? 2 : 1;
        head = step_at(s, next[s]);
        moved = true;
      }
    }
    for (int s = 0; s < shape_.stages; ++s) {
      if (next[s] < orders_[s].size()) throw std::logic_error("the schedule deadlocks");
    }
    return steps;
  }

 private:
  [[nodiscard]] Step step_at(int stage, std::size_t at) const {
    const std::vector<Slot>& order = orders_[stage];
    Step step;
    if (at >= order.size()) return step;
    step.stage = static_cast<std::uint16_t>(stage);
    step.starts = at == 0;
    step.paired = order[at].paired;
    step.slot = end_of(stage, order[at]);
    if (step.paired) step.other = end_of(stage, order[at + 1]);
    return step;
  }

  [[nodiscard]] std::uint32_t message(int stage, const Slot& slot) const {
    const std::size_t direction = slot.kind == Slot::Kind::forward ? 0 : 1;
    return static_cast<std::uint32_t>(((direction * shape_.stages + stage) * shape_.chunks + slot.chunk) * shape_.microbatches +
                                      slot.microbatch + 1);
  }

  [[nodiscard]] std::uint16_t way(int from, int to) const {
    const bool around = std::abs(from - to) > 1;  // from the last stage to the first, or back
    return static_cast<std::uint16_t>(around ? shape_.stages - 1 : std::min(from, to));
  }

  [[nodiscard]] End end_of(int stage, const Slot& slot) const {
    End end{.kind = slot.kind, .chunk = static_cast<std::uint16_t>(slot.chunk)};
    const auto [source, target] = ways_[stage].of(slot);
    if (source) {
      end.in = message(stage, slot);
      end.hop_in = way(source->stage, stage);
    }
    if (!target) return end;
    end.hop = way(stage, target->stage);
    end.out = message(target->stage, {slot.kind, slot.microbatch, target->chunk});
    return end;
  }

  const workloads::Schedule& schedule_;
  PipelineShape shape_;
  std::vector<std::vector<Slot>> orders_;   // [stage]
  std::vector<workloads::StageWays> ways_;  // [stage]
};

// An order of so many micro-batches, its steps comparable with those of another number.
struct Numbered {
  std::vector<Step> steps;
  std::uint32_t microbatches = 1;

  Numbered(const Workload& workload, int count) : microbatches(static_cast<std::uint32_t>(count)) {
    Workload fewer = workload;
    fewer.batch.global = count * workload.parallel.dp * workload.batch.micro;
    steps = Turns(fewer).steps();
  }

  // Whether step i is the other's step k, so many micro-batches earlier.
  [[nodiscard]] bool same(std::size_t i, const Numbered& other, std::size_t k, std::uint32_t later) const {
    const Step &a = steps[i], &b = other.steps[k];
    return a.stage == b.stage && a.starts == b.starts && a.paired == b.paired && same(a.slot, other, b.slot, later) &&
           same(a.other, other, b.other, later);
  }
  [[nodiscard]] bool same(std::size_t i, const Numbered& other, std::size_t k, std::size_t count, std::uint32_t later) const {
    for (std::size_t n = 0; n < count; ++n) {
      if (!same(i + n, other, k + n, later)) return false;
    }
    return true;
  }

 private:
  [[nodiscard]] bool same(const End& a, const Numbered& other, const End& b, std::uint32_t later) const {
    return a.kind == b.kind && a.chunk == b.chunk && a.hop == b.hop && same(a.in, other, b.in, later) && same(a.out, other, b.out, later);
  }
  [[nodiscard]] bool same(std::uint32_t a, const Numbered& other, std::uint32_t b, std::uint32_t later) const {
    if (a == 0 || b == 0) return a == b;
    --a, --b;
    return a / microbatches == b / other.microbatches && a % microbatches + later == b % other.microbatches;
  }
};

// A round pays only where there are a few.
constexpr int fewest_rounds = 4;

}  // namespace

SlotOrder SlotOrder::in_full(const Workload& workload) {
  Held held;
  held.shape = workloads::pipeline_shape(workload);
  held.steps = Turns(workload).steps();
  held.end = held.steps.size();
  held.note_work();
  SlotOrder order;
  order.held_ = std::make_shared<const Held>(std::move(held));
  return order;
}

// A round is a micro-batch, or as many as a chunk takes in turn. Which of the two does not depend on how many micro-batches there are.
SlotOrder::SlotOrder(const Workload& workload) {
  const PipelineShape shape = workloads::pipeline_shape(workload);
  for (const int period : {1, shape.stages}) {
    for (const int filled : {2, 3}) {  // so many micro-batches per stage fill the pipeline; 3 of zb-h2
      held_ = folded(workload, period, filled * shape.stages);
      if (held_ == nullptr) continue;
      *this = *with_microbatches(shape.microbatches);
      return;
    }
  }
  *this = in_full(workload);
}

std::optional<SlotOrder> SlotOrder::with_microbatches(int microbatches) const {
  const int period = held_->period, more = microbatches - (shape().microbatches - period);
  if (period == 0 || more < fewest_rounds * period || more % period != 0) return std::nullopt;
  SlotOrder order = *this;
  order.rounds_ = more / period;
  return order;
}

// With fewer micro-batches, and one and two rounds more: each adds the same steps at the same place. At least `fewest`.
std::shared_ptr<const SlotOrder::Held> SlotOrder::folded(const Workload& workload, int period, int fewest) {
  const PipelineShape shape = workloads::pipeline_shape(workload);
  const int few = fewest + (shape.microbatches % period + period - fewest % period) % period;
  if (few + fewest_rounds * period > shape.microbatches) return nullptr;
  const workloads::Schedule& schedule = workloads::ScheduleRegistry::get(workload.schedule);
  for (const int rounds : {0, 1, 2}) {
    if (!schedule.refusal({shape.stages, shape.chunks, few + rounds * period}).empty()) return nullptr;
  }
  const Numbered none(workload, few), once(workload, few + period), twice(workload, few + 2 * period);
  const std::size_t all = none.steps.size(), added = once.steps.size() - all;
  std::size_t begin = 0;
  while (begin < all && none.same(begin, once, begin, 0)) ++begin;
  const std::size_t end = begin + added, left = all - begin;
  const auto later = static_cast<std::uint32_t>(period);
  if (twice.steps.size() != once.steps.size() + added || !none.same(begin, once, end, left, later) || !once.same(0, twice, 0, end, 0) ||
      !once.same(begin, twice, end, added, later) || !none.same(begin, twice, end + added, left, 2 * later)) {
    return nullptr;
  }
  Held held;
  held.shape = {shape.stages, shape.chunks, few + period};
  held.steps = once.steps;
  held.begin = begin;
  held.end = end;
  held.period = period;
  held.note_work();
  held.note_messages();
  return std::make_shared<const Held>(std::move(held));
}

void SlotOrder::Held::note_work() {
  has_pairs = std::ranges::any_of(steps, &Step::paired);
  stages.resize(static_cast<std::size_t>(shape.stages));
  for (OfStage& own : stages) own.slots.reserve((has_pairs ? 2 : 1) * steps.size() / stages.size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Step& step = steps[i];
    OfStage& own = stages[step.stage];
    const auto slots = own.slots.size() + (step.paired ? 2 : 1);
    if (i < begin) own.begin = slots;
    if (i < end) own.end = slots;
    own.slots.push_back({step.slot.kind, step.slot.chunk});
    if (step.paired) own.slots.push_back({step.other.kind, step.other.chunk});
  }
  for (OfStage& own : stages) own.end = std::max(own.begin, own.end);
}

void SlotOrder::Held::note_messages() {
  std::set<std::uint32_t> sent, used;
  for (const Step& step : steps) {
    for (const End* to : {&step.slot, &step.other}) {
      if (to->out != 0) used.insert(step.stream(*to));
    }
  }
  for (const Step& step : std::span(steps).first(begin)) {
    for (const std::uint32_t in : {step.slot.in, step.other.in}) sent.erase(in);
    for (const std::uint32_t out : {step.slot.out, step.other.out}) sent.insert(out);
    sent.erase(0);
  }
  under_way.assign(sent.begin(), sent.end());
  streams.assign(used.begin(), used.end());
}

}  // namespace rehearse::sim
