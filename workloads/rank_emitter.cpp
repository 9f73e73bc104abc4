#include "workloads/rank_emitter.hpp"

#include <algorithm>

namespace rehearse::workloads {

RankEmitter::RankEmitter(Build& build, std::uint32_t rank)
    : build_(build),
      global_(build.folding.ranks[rank].rank),
      stage_(build.folding.ranks[rank].stage),
      plan_(build.compiled),
      program_(plan_.stages[stage_]),
      chain_(build, rank),
      slots_(plan_.shape) {}

SlotTable RankEmitter::emit() {
  list_tasks();
  if (build_.workload.offload_activations) plan_offloading();
  if (plan_.sync.replicated() && plan_.sync.gathers_weights && plan_.sync.overlap_parameters) gather_all_at_start();
  chain_.step_overhead();
  for (std::size_t i = 0; i < tasks_.size();) {
    if (tasks_[i].slot.paired && build_.workload.overlap.ep) {
      i = overlapped_pair(i);
    } else {
      task(i++);
    }
  }
  finish();
  return std::move(slots_);
}

void RankEmitter::list_tasks() {
  const std::vector<Slot> slots = slots_of(build_.workload, stage_);
  std::vector<int> backwards_left(program_.chunks.size());
  for (const Slot& slot : slots) backwards_left[slot.chunk] += completes_gradients(slot) ? 1 : 0;
  std::vector<bool> seen(program_.chunks.size());
  for (const Slot& slot : slots) {
    const bool completes = completes_gradients(slot) && --backwards_left[slot.chunk] == 0;
    list_tasks(slot, !seen[slot.chunk], completes);
    seen[slot.chunk] = true;
  }
}

void RankEmitter::list_tasks(const Slot& slot, bool first_forward, bool completes) {
  const std::vector<Unit>& units = program_.chunks[slot.chunk];
  const std::size_t n = units.size();
  const bool together = plan_.cut.granularity == Granularity::stage && stands_alone(slot, first_forward, completes);
  if (n == 0) tasks_.push_back({slot, nullptr, 1, true, true});
  for (std::size_t k = 0; k < n;) {
    Task task{slot, &units[slot.kind == Slot::Kind::forward ? k : n - 1 - k], 1, k == 0, false, completes};
    if (together) task.units = equal_units(task, n - k);
    k += static_cast<std::size_t>(task.units);
    task.last = k == n;
    tasks_.push_back(task);
  }
}

// Whether nothing waits for a unit of this slot, or lets one wait, but its neighbours in the slot.
bool RankEmitter::stands_alone(const Slot& slot, bool first_forward, bool completes) const {
  if (build_.workload.offload_activations || (slot.paired && build_.workload.overlap.ep)) return false;
  const ReplicaSync& sync = plan_.sync;
  if (!sync.replicated()) return true;
  if (sync.shards_parameters || (first_forward && sync.gathers_weights && sync.overlap_parameters)) return false;
  return !completes_gradients(slot) || !(sync.reduce_each_microbatch || (completes && sync.overlap_gradients));
}

// How many units from this one on share its program and can be one operation, one after another.
int RankEmitter::equal_units(const Task& from, std::size_t at_most) const {
  const UnitProgram& program = *from.unit->program;
  const auto exact = [&](const std::vector<Segment>& segments) { return repeats_exactly(segments, plan_.cut); };
  for (const auto* pass : {&program.forward, &program.recompute, &program.backward, &program.backward_input, &program.backward_weight}) {
    if (!exact(*pass)) return 1;
  }
  const int step = from.slot.kind == Slot::Kind::forward ? 1 : -1;
  int equal = 1;
  while (equal < static_cast<int>(at_most) && from.unit[step * equal].program == from.unit->program) ++equal;
  return equal;
}

Place RankEmitter::place_of(const Task& task) const {
  Place place;
  place.slot = task.slot;
  if (task.unit != nullptr) {
    place.layer = task.unit->first_layer;
    place.unit = static_cast<int>(task.unit - program_.chunks[task.slot.chunk].data());
    place.units = task.units;
  }
  return place;
}

// "layers 0-7" for several.
std::string RankEmitter::name_of(const Task& task) const {
  if (task.units == 1) return task.unit->name;
  const Unit& other = task.unit[(task.slot.kind == Slot::Kind::forward ? 1 : -1) * (task.units - 1)];
  const auto [low, high] = std::minmax(task.unit->first_layer, other.first_layer);
  return "layers " + std::to_string(low) + "-" + std::to_string(high);
}

void RankEmitter::plan_offloading() {
  for (std::size_t i = 0; i < tasks_.size(); ++i) {
    tasks_[i].turn = task_of_turn_.size();
    if (tasks_[i].unit != nullptr) task_of_turn_.push_back(i);
  }
  offloading_ = offloading(unit_turns(plan_.schedule->order(plan_.shape, stage_), program_), program_);
}

double RankEmitter::offloaded_bytes(const Task& t) const {
  const UnitProgram& program = *t.unit->program;
  if (program.offloaded_per_pair == 0) return program.offloaded_bytes;
  const double pairs = build_.experts->loads().received(plan_.grid.expert_rank(global_), t.unit->first_layer, t.slot.microbatch);
  return program.offloaded_bytes + pairs * program.offloaded_per_pair;
}

void RankEmitter::store(const Task& t) {
  if (t.unit == nullptr || !offloading_.leave[t.turn]) return;
  const OpId id =
      chain_.copy_beside("activations to host", GroupKind::to_host, offloaded_bytes(t), chain_.tail(), "offload " + t.unit->name);
  left_[t.turn] = stored_[{t.unit, t.slot.microbatch}] = id;
}

// Copies a turn's activations in: as soon as the turn before it may start.
void RankEmitter::fetch(std::size_t turn) {
  if (turn >= task_of_turn_.size() || !offloading_.come_back[turn] || fetched_.contains(turn)) return;
  const Task& t = tasks_[task_of_turn_[turn]];
  std::vector<OpId> after{stored_.at({t.unit, t.slot.microbatch})};
  if (turn >= 2) after.insert(after.end(), ends_[task_of_turn_[turn - 2]].begin(), ends_[task_of_turn_[turn - 2]].end());
  if (turn >= 3 && left_.contains(turn - 3)) after.push_back(left_.at(turn - 3));
  Place place = place_of(t);
  place.pass = Pass::backward_input;
  chain_.move_to(place);
  fetched_[turn] = chain_.copy_beside("activations from host", GroupKind::from_host, offloaded_bytes(t), after, "fetch " + t.unit->name);
}

void RankEmitter::wait_for_copies(const Task& t) {
  if (t.unit == nullptr) return;
  fetch(t.turn);
  fetch(t.turn + 1);
  chain_.move_to(place_of(t));
  if (const auto in = fetched_.find(t.turn); in != fetched_.end()) chain_.next_waits_for(in->second);
  if (const auto out = left_.find(t.turn - 2); t.turn >= 2 && out != left_.end()) chain_.next_waits_for(out->second);
}

void RankEmitter::task(std::size_t i) {
  const Task& t = tasks_[i];
  chain_.move_to(place_of(t));
  if (t.first && !inside_pair(i)) chain_.mark();
  gather_before(i);
  if (build_.workload.offload_activations) wait_for_copies(t);
  execute(t, gather_of_task_.contains(i + 1) ? gather_of_task_.at(i + 1) : no_op);
  ends_.push_back(chain_.tail());
  if (build_.workload.offload_activations) store(t);
  reduce_after(t);
  if (!t.last || t.slot.paired) return;
  if (first_of_pair_) leave_slot(*std::exchange(first_of_pair_, std::nullopt));
  leave_slot(t.slot);
}

// Whether task i belongs to the second slot of a pair: what the first waits for, it waits for too. The first is left after it.
bool RankEmitter::inside_pair(std::size_t i) {
  if (i > 0 && tasks_[i].first && tasks_[i - 1].slot.paired) first_of_pair_ = tasks_[i - 1].slot;
  return first_of_pair_.has_value();
}

std::vector<std::vector<RankEmitter::Piece>> RankEmitter::pieces(const Task& task) const {
  std::vector<std::vector<Piece>> all;
  bool in_dense = false;
  if (task.unit == nullptr) return all;
  const UnitProgram& program = *task.unit->program;
  const auto add = [&](Pass pass, const std::vector<Segment>& segments, const char* what) {
    for (const Segment& segment : segments) {
      const bool dense = !std::holds_alternative<ExpertSegment>(segment);
      if (!dense || !in_dense) all.emplace_back();
      all.back().push_back({pass, &segment, what + task.unit->name});
      in_dense = dense;
    }
  };
  if (task.slot.kind == Slot::Kind::forward) {
    add(Pass::forward, program.forward, "F ");
  } else {
    add(Pass::recompute, program.recompute, "recompute ");
    add(Pass::backward_input, task.slot.kind == Slot::Kind::backward ? program.backward : program.backward_input, "B ");
  }
  return all;
}

void RankEmitter::begin_beside(std::size_t i, int thread) {
  chain_.enter(thread);
  chain_.move_to(place_of(tasks_[i]));
  if (tasks_[i].first) chain_.mark();
  gather_before(i);
  if (tasks_[i].unit == nullptr) empty_operation();
}

void RankEmitter::end_beside(std::size_t i, int thread) {
  chain_.enter(thread);
  reduce_after(tasks_[i]);
  if (tasks_[i].last) leave_slot(tasks_[i].slot);
}

// Equation (22): the units of both slots go side by side, a piece of backward and a piece of forward by turns, so that the exchange of each
// runs behind the computation of the other. Backward first: its exchange follows its first piece sooner.
std::size_t RankEmitter::overlapped_pair(std::size_t first) {
  std::size_t middle = first, end = first;
  while (tasks_[middle].slot.paired) ++middle;
  for (end = middle; !tasks_[end].last;) ++end;
  ++end;
  chain_.fork();
  for (std::size_t k = 0; first + k < middle || middle + k < end; ++k) {
    std::vector<std::vector<Piece>> by_thread[2];
    const std::size_t task[2] = {first + k, middle + k};
    const bool there[2] = {task[0] < middle, task[1] < end};
    for (const int thread : {1, 0}) {
      if (!there[thread]) continue;
      begin_beside(task[thread], thread);
      by_thread[thread] = pieces(tasks_[task[thread]]);
    }
    for (std::size_t piece = 0; piece < std::max(by_thread[0].size(), by_thread[1].size()); ++piece) {
      for (const int thread : {1, 0}) {
        if (piece >= by_thread[thread].size()) continue;
        chain_.enter(thread);
        for (const Piece& now : by_thread[thread][piece]) {
          chain_.set_pass(now.pass);
          chain_.run(*now.segment, now.pass == Pass::recompute ? Phase::recompute : Phase::compute, now.label);
        }
      }
    }
    for (const int thread : {1, 0}) {
      if (there[thread]) end_beside(task[thread], thread);
    }
  }
  chain_.join();
  while (ends_.size() < end) ends_.push_back(chain_.tail());
  return end;
}

void RankEmitter::execute(const Task& task, OpId next) {
  if (task.unit == nullptr) return empty_operation();
  const UnitProgram& program = *task.unit->program;
  const std::string name = name_of(task);
  switch (task.slot.kind) {
    case Slot::Kind::forward:
      return run_pass(Pass::forward, program.forward, "F " + name);
    case Slot::Kind::backward:
      run_pass(Pass::recompute, program.recompute, "recompute " + name);
      return run_pass(Pass::backward_input, program.backward, "B " + name, next);
    case Slot::Kind::backward_input:
      run_pass(Pass::recompute, program.recompute, "recompute " + name);
      return run_pass(Pass::backward_input, program.backward_input, "B " + name, next);
    case Slot::Kind::backward_weight:
      return run_pass(Pass::backward_weight, program.backward_weight, "W " + name);
  }
}

// Something for the neighbour stages to wait for in a slot that computes nothing.
void RankEmitter::empty_operation() {
  static const std::vector<Operator> nothing;
  chain_.compute(&nothing, nothing, 1, Phase::compute, "empty chunk");
}

// next_gathered: the gather of the next turn, where it goes ahead.
void RankEmitter::run_pass(Pass pass, const std::vector<Segment>& segments, const std::string& label, OpId next_gathered) {
  chain_.set_pass(pass);
  for (const Segment& segment : segments) {
    const auto* computed = std::get_if<ComputeSegment>(&segment);
    if (computed != nullptr && computed->behind_gather && next_gathered != no_op) chain_.next_waits_for(next_gathered);
    chain_.run(segment, pass == Pass::recompute ? Phase::recompute : Phase::compute, label);
  }
}

void RankEmitter::leave_slot(const Slot& slot) {
  if (slot.kind == Slot::Kind::backward_weight) return;
  if (chain_.first_since_mark() == no_op) empty_operation();
  const bool forward = slot.kind == Slot::Kind::forward;
  SlotEnds& ends = slots_.at(slot.kind, slot.chunk, slot.microbatch);
  ends.entry = chain_.first_since_mark();
  const std::optional<Location> target = target_of(*plan_.schedule, plan_.shape, stage_, slot);
  if (!target) return;
  ends.send = chain_.send(forward, plan_.grid.at_stage(global_, target->stage), plan_.message_bytes);
  if (!build_.workload.overlap.pp) chain_.also_wait_for(ends.send);
}

void RankEmitter::finish() {
  chain_.move_to({});
  const bool replicas = plan_.sync.replicated();
  const Parameters& parameters = program_.parameters;
  reduce_late();
  if (last_reduction_ != no_op) chain_.also_wait_for(last_reduction_);
  if (replicas && !plan_.sync.overlap_gradients && !plan_.sync.reduce_each_microbatch) {
    for (const Communication& what : plan_.sync.reductions(parameters))
      chain_.collective(what, plan_.sync.calls_of(parameters), "reduce gradients");
  }
  tied_embeddings();
  chain_.compute(&program_.update, program_.update, 1, Phase::optimizer, "optimizer");
  if (const HostUpdate& host = program_.on_host; host.happens()) {
    chain_.copy("gradients to host", GroupKind::to_host, host.gradients);
    chain_.copy("update on host", GroupKind::host_memory, host.moved);
    if (host.weights > 0) chain_.copy("weights from host", GroupKind::from_host, host.weights);
  }
  if (replicas && plan_.sync.gathers_weights && !plan_.sync.overlap_parameters) {
    for (const Communication& what : plan_.sync.gathers_at_once(parameters))
      chain_.collective(what, plan_.sync.calls_at_once(), plan_.sync.owners > 0 ? "broadcast weights" : "all-gather weights");
  }
}

void RankEmitter::tied_embeddings() {
  const double bytes = plan_.tied_bytes_of(stage_);
  if (bytes == 0) return;
  const Communication what{"embedding all-reduce", CollectiveKind::all_reduce, GroupKind::embedding, bytes, Pass::update};
  chain_.collective(what, 1, what.name);
}

}  // namespace rehearse::workloads
