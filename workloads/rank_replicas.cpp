// What a rank's step gathers and reduces between replicas (RankEmitter).
#include "workloads/rank_emitter.hpp"

namespace rehearse::workloads {
namespace {

// In as many calls as both together.
Parameters experts_of(const Parameters& both) { return {both.experts, both.experts, both.experts, 0, both.tensors}; }
Parameters dense_of(const Parameters& both) { return {both.all - both.experts, 0, both.layers - both.experts, both.frozen, both.tensors}; }

bool recomputes(const Slot& slot) { return slot.kind == Slot::Kind::backward || slot.kind == Slot::Kind::backward_input; }

}  // namespace

// Beside the chain, dense parameters and experts one after the other; the last of them.
OpId RankEmitter::beside(const std::vector<Communication>& calls, int times, const std::vector<OpId>& after, const std::string& label) {
  OpId last = no_op;
  for (const Communication& call : calls) last = chain_.beside(call, times, after, label);
  return last;
}
OpId RankEmitter::gather(const Parameters& what, const std::vector<OpId>& after, const std::string& label) {
  return beside(plan_.sync.gathers(what), plan_.sync.calls_of(what), after, label);
}
OpId RankEmitter::reduce(const Parameters& what, const std::string& label) {
  const OpId reduced = beside(plan_.sync.reductions(what), plan_.sync.calls_of(what), chain_.tail(), label);
  const std::vector<Communication> copies = plan_.sync.sums_of_copies(what);
  return copies.empty() ? reduced : chain_.beside(copies, {reduced}, Stream::dp_copies, label);
}

// ZeRO-1 with overlapped parameters: the all-gather of the last update runs behind the first forwards.
void RankEmitter::gather_all_at_start() {
  for (const bool experts : {false, true}) {
    if (experts && !experts_last()) continue;
    for (const std::vector<Unit>& units : program_.chunks) {
      for (const Unit& unit : units) {
        const Parameters& all = unit.exchanged;
        const OpId id = gather(!experts_last() ? all : experts ? experts_of(all) : dense_of(all), {}, unit.name);
        if (id != no_op) gathered_[&unit] = id;
      }
    }
  }
}

// ZeRO-3: gathers task i's parameters, once more where backward needs them again behind recomputation (which both gathers precede here).
// Overlapped: as soon as the task before it starts, i.e. after the one before that.
void RankEmitter::gather_for(std::size_t i) {
  if (i >= tasks_.size() || tasks_[i].unit == nullptr || gather_of_task_.contains(i)) return;
  std::vector<OpId> after;
  if (gathers_at_its_turn(i)) {
    after = chain_.tail();
    if (plan_.sync.copies_beside && last_reduction_ != no_op) after.push_back(last_reduction_);
  } else if (i >= 2) {
    after = ends_[i - 2];
  }
  const Unit& unit = *tasks_[i].unit;
  const bool forward = tasks_[i].slot.kind == Slot::Kind::forward;
  OpId last = unit.leads_root && !forward ? no_op : gather(unit.exchanged, after, unit.name);
  if (unit.recomputed && recomputes(tasks_[i].slot)) {
    const OpId again = beside(plan_.sync.gathers_again(unit.exchanged), plan_.sync.calls_again(unit.exchanged), after, unit.name);
    if (again != no_op) last = again;
  }
  gather_of_task_[i] = last;
}

// Not ahead. The first task's is, beside the stack's own time.
bool RankEmitter::gathers_at_its_turn(std::size_t i) const {
  if (!plan_.sync.overlap_parameters) return true;
  const bool forward = i > 0 && i < tasks_.size() && tasks_[i].slot.kind == Slot::Kind::forward;
  return forward && tasks_[i].unit != nullptr && tasks_[i].unit->leads_root;
}

void RankEmitter::gather_before(std::size_t i) {
  const Task& t = tasks_[i];
  if (const auto it = gathered_.find(t.unit); it != gathered_.end()) {
    chain_.next_waits_for(it->second);
    gathered_.erase(it);
  }
  if (!plan_.sync.shards_parameters || !plan_.sync.replicated() || t.unit == nullptr) return;
  gather_for(i);
  if (gather_of_task_.at(i) != no_op) chain_.next_waits_for(gather_of_task_.at(i));
  if (!gathers_at_its_turn(i + 1)) gather_for(i + 1);
}

void RankEmitter::reduce_after(const Task& t) {
  if (!plan_.sync.replicated() || !completes_gradients(t.slot) || t.unit == nullptr) return;
  if (!plan_.sync.reduce_each_microbatch && !(plan_.sync.overlap_gradients && t.completes)) return;
  Parameters now = t.unit->exchanged;
  if (experts_last() && now.experts > 0) {
    late_.push_back(t.unit);
    now = dense_of(now);
  }
  const OpId id = reduce(now, t.unit->name);
  if (id == no_op) return;
  if (plan_.sync.overlap_gradients) {
    last_reduction_ = id;
  } else {
    chain_.also_wait_for(id);
  }
}

void RankEmitter::reduce_late() {
  for (const Unit* unit : late_) {
    if (const OpId id = reduce(experts_of(unit->exchanged), unit->name); id != no_op) last_reduction_ = id;
  }
}

}  // namespace rehearse::workloads
