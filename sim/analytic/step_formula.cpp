#include "sim/analytic/step_formula.hpp"

#include <algorithm>
#include <optional>

#include "sim/analytic/crowd.hpp"
#include "sim/analytic/replica_walk.hpp"
#include "sim/analytic/stage_terms.hpp"

namespace rehearse::sim {
namespace {

using workloads::Slot;

class Formula {
 public:
  Formula(const System& system, const workloads::Workload& workload, const workloads::Compiled& compiled, const PlanCost& plan,
          const ReplicaRules& rules, PriceBook& prices, Workspace& space, bool stages_share)
      : system_(system),
        workload_(workload),
        schedule_(*compiled.schedule),
        compiled_(compiled),
        plan_(plan),
        rules_(rules),
        space_(space),
        formula_(space.formula(workload, compiled)) {
    if (!stages_share) return;
    if (system.simulation.collectives != Fidelity::closed) nic_users_ = prices.stages_at_nics();
    if (space.stages.front().in_memory_s > 0 && !mirrors()) memory_users_ = prices.stages_at_hosts();
  }

  // The pipeline and what follows it, by closed form where that is right.
  StepTerms terms(bool by_phase) {
    if (walks_replicas(workload_, compiled_, rules_)) return walked_terms(by_phase);
    fill_times();
    by_units_ = walks_units(workload_, rules_) || messages_meet();
    const bool by_units = by_units_, uniform = !by_units && follows_closed_form();
    if (!uniform && !by_units) {
      const auto what = by_phase ? SlotWalk::What::both : SlotWalk::What::with_messages;
      space_.walk.walk(space_.slot_order(workload_, compiled_), space_.times, what);
    }
    if (by_units) {
      space_.unit_walks.begin(space_.units, space_.stages, rules_);
      space_.units_walked = space_.unit_walks.walk(workload_, compiled_, space_.stages, rules_, plan_.contentions.offload,
                                                   space_.times.hop_s, space_.slot_order(workload_, compiled_));
    }
    const double core = uniform    ? formula_.seconds(space_.times) + end_s()
                        : by_units ? walked_s(space_.units_walked.spans)
                                   : walked_s(space_.walk.spans());
    const double start = walks_exchange() && rules_.sync.shards_parameters ? 0 : start_s();
    const double step_s = system_.software.step_s + start + core;  // (14)
    if (!by_phase) return {step_s, {}};
    space_.shown_update_s = space_.update_s;
    std::swap(space_.times.hop_s, space_.no_hops);
    const double exposed_pp = core - (uniform    ? formula_.seconds(space_.times) + end_s()
                                      : by_units ? walked_s(units_without_messages().spans)
                                                 : walked_s(space_.walk.without_messages()));
    for (int s = 0; s < stages(); ++s) space_.phases[s] = phases(s, exposed_pp, start, step_s);
    return {step_s, space_.phases};
  }

 private:
  StepTerms walked_terms(bool by_phase) {
    const StageTerms& all = stage(0);
    const double reduced = walk_replicas(rules_, all.chunks.front());
    const double step_s = reduced + replicas(0).reduce_in_line_s() + all.tied_s + all.update_s + replicas(0).gather_at_end_s();
    if (!by_phase) return {step_s, {}};
    PhaseTimes& phases = space_.phases.front() = {};
    for (const UnitTerms* unit : all.chunks.front()) {
      for (const PhaseTimes* pass : {&unit->cost->forward, &unit->cost->backward, &unit->cost->weight}) add(phases, *pass);
    }
    for (double& seconds : phases.seconds) seconds *= workload_.microbatches();
    phases[Phase::optimizer] = all.update_s + system_.software.step_s;
    phases[Phase::dp] = std::max(0.0, step_s - phases.total());
    return {step_s, space_.phases};
  }

  // Where backward is split a stage works on weight gradients while messages are under way, until it has none left, or sends in the middle
  // of them: no closed form is exact for messages.
  [[nodiscard]] bool follows_closed_form() const {
    const bool messages = std::ranges::any_of(space_.times.hop_s, [](double hop) { return hop > 0; });
    return is_uniform(space_.times) && !(schedule_.splits_backward() && messages);
  }
  [[nodiscard]] const UnitSpans& units_without_messages() const {
    return space_.unit_walks.without_messages(workload_, compiled_, space_.stages, rules_, plan_.contentions.offload,
                                              space_.slot_order(workload_, compiled_));
  }
  // What replicas exchange for every micro-batch is in the walk of the units.
  [[nodiscard]] bool walks_exchange() const { return by_units_ && rules_.exchanges_each(); }
  // What replicas exchange for every micro-batch and the messages between stages, on the GPUs' ports.
  [[nodiscard]] bool messages_meet() const {
    return rules_.exchanges_each() &&
           std::ranges::any_of(space_.stages, [](const StageTerms& terms) { return terms.to_next.anything || terms.to_last.anything; });
  }

  [[nodiscard]] int stages() const { return compiled_.shape.stages; }
  [[nodiscard]] const StageTerms& stage(int s) const { return space_.stages[static_cast<std::size_t>(s)]; }
  [[nodiscard]] ReplicaCost replicas(int s) const { return {rules_, stage(s)}; }
  [[nodiscard]] bool mirrors() const { return schedule_.mirrors(); }

  // (7), (8): seconds of each chunk.
  void fill_times() {
    PipelineTimes& times = space_.times;
    const std::size_t p = space_.stages.size(), v = plan_.chunks;
    const bool leads = p > 1 && rules_.gathers_each();
    times.microbatches = workload_.microbatches();
    times.blocking = p > 1 && !workload_.overlap.pp;
    times.hop_s = plan_.hop_s;
    space_.no_hops.assign(p, 0.0);
    for (PerChunk* all : {&times.forward_s, &times.backward_s, &times.weight_s, &times.whole_s}) all->lay_out(p, v);
    for (PerChunk* all : {&times.lead_forward_s, &times.lead_backward_s}) all->lay_out(leads ? p : 0, v);
    times.pairs.clear();
    for (std::size_t s = 0; s < p; ++s) {
      for (std::size_t c = 0; c < v; ++c) fill_chunk(s, c);
      if (workload_.overlap.ep) add_pairs(static_cast<int>(s));
    }
  }

  void fill_chunk(std::size_t s, std::size_t c) {
    PipelineTimes& times = space_.times;
    const ChunkTerms units = space_.stages[s].chunks[c];
    const bool split = schedule_.splits_backward();
    times.forward_s[s][c] = slot_s(units, Slot::Kind::forward);
    times.backward_s[s][c] = slot_s(units, split ? Slot::Kind::backward_input : Slot::Kind::backward);
    times.weight_s[s][c] = split ? slot_s(units, Slot::Kind::backward_weight) : 0;
    times.whole_s[s][c] = split ? slot_s(units, Slot::Kind::backward) : times.backward_s[s][c];
    if (!times.lead_forward_s.empty() && !units.empty()) {
      times.lead_forward_s[s][c] = rules_.exposed_gather_s(*units.front(), Slot::Kind::forward);
      times.lead_backward_s[s][c] = rules_.exposed_gather_s(*units.back(), Slot::Kind::backward);
    }
  }

  [[nodiscard]] static double slot_s(ChunkTerms units, Slot::Kind kind) {
    double sum = 0;
    for (const UnitTerms* unit : units) sum += unit->slot_s[static_cast<std::size_t>(kind)];
    return sum;
  }

  // Equation (22).
  void add_pairs(int s) {
    for (std::size_t forward = 0; forward < plan_.chunks; ++forward) {
      for (std::size_t backward = 0; backward < plan_.chunks; ++backward) space_.times.pairs.push_back(pair(s, forward, backward));
    }
  }

  [[nodiscard]] PairTimes pair(int s, std::size_t forward_chunk, std::size_t backward_chunk) {
    space_.forward.clear();
    space_.backward.clear();
    for (const UnitTerms* unit : stage(s).chunks[forward_chunk]) space_.forward.emplace_back(unit->cost->forward_pieces);
    double weight = 0;
    for (const UnitTerms* unit : stage(s).chunks[backward_chunk]) {
      space_.backward.emplace_back(unit->cost->backward_pieces);
      weight += unit->weight_s;
    }
    std::ranges::reverse(space_.backward);
    PairTimes times = paired(space_.forward, space_.backward, plan_.contentions.ep);
    times.seconds += weight;
    times.first_early_s += weight;
    return times;
  }

  // Chunks of a stage take turns, forward and backward in opposite order; the mean stands for them.
  [[nodiscard]] double mean_pair_s(int s) const {
    const std::size_t v = plan_.chunks, first = static_cast<std::size_t>(s) * v * v;
    double sum = 0;
    for (std::size_t c = 0; c < v; ++c) sum += space_.times.pairs[first + c * v + v - 1 - c].seconds;
    return sum / static_cast<double>(v);
  }

  // How much later than stage 0 a stage starts its first forward, and how much earlier it ends its last backward.
  // Mirrored pipelines fill from both ends.
  [[nodiscard]] double offset_s(const PerChunk& chunk_s, int stage) const {
    double offset = 0;
    const int way = mirrors() ? std::min(stage, stages() - 1 - stage) : stage;
    for (int s = 0; s < way; ++s) offset += chunk_s[s].front() + space_.times.hop_s[s];
    return offset;
  }

  // What the gathers of the last update's weights delay the pipeline by: the first forward goes through all stages one after another, and
  // is stretched where a stage still gathers.
  [[nodiscard]] double start_s() const {
    double delay = 0;
    for (int s = 0; s < stages(); ++s) {
      const double arrival = offset_s(space_.times.forward_s, s) + delay;
      const double waits = std::max(0.0, replicas(s).at_start_s() - arrival);
      delay += s == 0 ? waits : std::max(waits, replicas(s).first_forward_stretch_s(arrival));
    }
    return delay;
  }

  // (13): reduction, update, all-gather; later stages begin earlier. The last backward goes through all stages too, stretched by the
  // reductions that it hides; stage 0's own is part of its exposed reduction.
  [[nodiscard]] double end_s() const {
    space_.ends.clear();
    for (int s = 0; s < stages(); ++s) {
      const bool meets_first = stage(s).tied_s > 0;  // the tied embedding's gradients meet: the last stage waits for the first
      const double head_start = meets_first || mirrors() ? 0 : offset_s(space_.times.backward_s, s);
      space_.ends.push_back(-head_start + (reduces_in_line() ? 0 : replicas(s).reduce_at_end_s()));
    }
    const auto tie = [&] {
      for (int s = 0; s < stages(); ++s) space_.ends[s] += stage(s).tied_s;
    };
    return stretch_s() + updated_s([](int) { return 0.0; }, tie);
  }
  [[nodiscard]] double stretch_s() const {
    double sum = 0;
    for (int s = 1; s < stages(); ++s) sum += replicas(s).last_backward_stretch_s();
    return sum;
  }

  // The same where each stage's own end is known. Replicas, and the two ends of the model where they share the embedding, wait for one
  // another.
  [[nodiscard]] double walked_s(const StageSpans& spans) const {
    std::vector<double>& ends = space_.ends;
    ends.clear();
    for (int s = 0; s < stages(); ++s) ends.push_back(reduced_s(spans, s));
    const auto start = [&](int s) { return schedule_.staggers_steps() ? spans.start_s[s] : 0; };
    const auto tie = [&] {
      double tied = 0;
      for (int s = 0; s < stages(); ++s) {
        if (stage(s).tied_s > 0) tied = std::max(tied, ends[s] + stage(s).tied_s);
      }
      for (int s = 0; s < stages(); ++s) ends[s] = stage(s).tied_s > 0 ? tied : ends[s];
    };
    return stretch_s() + updated_s(start, tie);
  }

  // What follows the last backwards (or the reductions beside them), which ended at space_.ends: the longest of the stages' steps, each
  // from its own start.
  template <class Start, class Tie>
  [[nodiscard]] double updated_s(const Start& start, const Tie& tie) const {
    std::vector<double>& ends = space_.ends;
    const bool tied = std::ranges::any_of(space_.stages, [](const StageTerms& terms) { return terms.tied_s > 0; });
    space_.update_s.clear();
    for (const StageTerms& own : space_.stages) space_.update_s.push_back(own.update_s);
    if (!nic_users_.empty() && memory_users_.empty() && !tied && !mirrors()) {
      space_.works.clear();
      for (int s = 0; s < stages(); ++s) {
        const StageTerms& own = stage(s);
        StageWork& work = space_.works.emplace_back(StageWork{.begin_s = ends[s], .pause_s = own.update_s});
        if (reduces_in_line()) work.turns[0] = {own.reduce_alone_s, own.reduce_s};
        if (gathers_in_line()) work.turns[1] = {own.gather_alone_s, own.gather_s};
      }
      share_among_stages(space_.works, nic_users_, ends);
    } else {
      if (reduces_in_line()) let_share(nic_users_, &StageTerms::reduce_alone_s, &StageTerms::reduce_s);
      tie();
      for (int s = 0; s < stages(); ++s) {
        ends[s] += stage(s).update_s - stage(s).in_memory_s - stage(s).from_host_s;
        space_.update_s[s] -= stage(s).in_memory_s + ends[s];
      }
      let_share(memory_users_, &StageTerms::in_memory_alone_s, &StageTerms::in_memory_s);
      for (int s = 0; s < stages(); ++s) {
        space_.update_s[s] += ends[s];
        ends[s] += stage(s).from_host_s;
      }
      if (gathers_in_line()) let_share(nic_users_, &StageTerms::gather_alone_s, &StageTerms::gather_s);
    }
    double longest = 0;
    for (int s = 0; s < stages(); ++s) longest = std::max(longest, ends[s] - start(s));
    return longest;
  }

  // All stages go on from where they are: what they do together takes each as long as the others leave it of what they share.
  void let_share(std::span<const double> users, double StageTerms::*alone, double StageTerms::*shared) const {
    std::vector<double>& ends = space_.ends;
    if (users.empty()) {
      for (int s = 0; s < stages(); ++s) ends[s] += stage(s).*shared;
      return;
    }
    const int works = mirrors() ? stages() / 2 : stages();  // mirrored stages exchange together
    space_.works.assign(space_.stages.size(), {});
    for (int s = 0; s < works; ++s) space_.works[s] = {ends[s], {StageWork::Turn{stage(s).*alone, stage(s).*shared}}};
    share_among_stages(space_.works, users, ends);
    for (int s = works; s < stages(); ++s) ends[s] = ends[stages() - 1 - s];
  }

  // New weights all at once, after the update.
  [[nodiscard]] bool gathers_in_line() const { return rules_.sync.gathers_weights && !rules_.sync.overlap_parameters; }
  // All gradients at once, when a stage's last backward has ended.
  [[nodiscard]] bool reduces_in_line() const {
    return rules_.sync.replicated() && !rules_.sync.overlap_gradients && !rules_.sync.reduce_each_microbatch;
  }

  // When its gradients are, unless they are reduced in line. The chunks of the mirrored stage are this one's the other way round.
  [[nodiscard]] double reduced_s(const StageSpans& spans, int s) const {
    const int mirror = mirrors() ? stages() - 1 - s : s;
    const double end = std::max(spans.end_s[s], spans.end_s[mirror]);
    if (reduces_in_line()) return end;
    completed(spans, s, space_.completed);
    space_.mirrored.clear();
    if (mirrors()) completed(spans, mirror, space_.mirrored);
    std::ranges::reverse(space_.mirrored);
    return walks_exchange() ? end : replicas(s).reduced_s(space_.completed, space_.mirrored, end, space_.ready);
  }

  // Of all splitting schedules the mirrored ones alone have backwards in one slot.
  void completed(const StageSpans& spans, int s, std::vector<Completed>& chunks) const {
    chunks.clear();
    for (const double end : spans.completed_s[s]) chunks.push_back({end});
    if (!mirrors() || !rules_.sync.overlap_gradients) return;
    workloads::PipelineShape shape = compiled_.shape;
    shape.microbatches = workload_.microbatches();
    for (const Slot& slot : schedule_.order(shape, s)) {
      if (slot.kind == Slot::Kind::backward || slot.kind == Slot::Kind::backward_weight)
        chunks[slot.chunk].whole = slot.kind == Slot::Kind::backward;
    }
  }

  [[nodiscard]] PhaseTimes phases(int s, double exposed_pp, double start, double step_s) const {
    PhaseTimes phases;
    double exchange = 0;
    for (std::size_t c = 0; c < plan_.chunks; ++c) {
      for (const UnitTerms* unit : stage(s).chunks[c]) {
        add(phases, unit->cost->forward);
        add(phases, splits_most() ? unit->cost->backward : unit->cost->whole);
        if (splits_most()) add(phases, unit->cost->weight);
      }
      exchange += exchange_s(stage(s).chunks[c]);
    }
    const int m = workload_.microbatches() / (mirrors() ? 2 : 1);             // through each chunk
    const double alone = phases.total() / static_cast<double>(plan_.chunks);  // of a chunk's forward and backward
    for (double& seconds : phases.seconds) seconds *= m;
    if (workload_.overlap.ep) hide_pairs(phases, static_cast<double>(m * plan_.chunks) * std::max(0.0, alone - mean_pair_s(s)));
    phases[Phase::pp] = exposed_pp;
    phases[Phase::offload] = workload_.offload_activations ? space_.units_walked.copies_s[s] : 0;
    phases[Phase::dp] = std::min(start, replicas(s).at_start_s()) + stage(s).tied_s + replicas(s).gather_at_end_s() +
                        (walks_exchange() ? space_.units_walked.exchanged_s[s] : m * exchange + replicas(s).reduce_at_end_s());
    phases[Phase::optimizer] = space_.shown_update_s[s] + system_.software.step_s;
    // What messages and exchange add to the step counts once, for the stage that sets the pace: another has less of it.
    double over = std::max(0.0, phases.total() - step_s);
    for (const Phase phase : {Phase::pp, Phase::dp, Phase::offload}) {
      const double part = std::min(over, std::max(0.0, phases[phase]));
      phases[phase] -= part;
      over -= part;
    }
    phases[Phase::bubble] = std::max(0.0, step_s - phases.total());  // what is left of the step
    return phases;
  }

  static void add(PhaseTimes& to, const PhaseTimes& more) {
    for (std::size_t i = 0; i < phase_count; ++i) to.seconds[i] += more.seconds[i];
  }

  // Exchanges first, then other calls that leave the computation to the pair.
  static void hide_pairs(PhaseTimes& phases, double hidden) {
    for (const Phase phase : {Phase::ep, Phase::tp, Phase::cp}) {
      const double part = std::min(hidden, phases[phase]);
      phases[phase] = std::max(0.0, phases[phase] - part);
      hidden -= part;
    }
  }

  // Mirrored schedules split few of their backwards.
  [[nodiscard]] bool splits_most() const { return schedule_.splits_backward() && !mirrors(); }

  // Exposed exchange of a chunk's slots for one micro-batch.
  [[nodiscard]] double exchange_s(ChunkTerms units) const {
    const bool twice = splits_most();
    double sum = 0;
    for (const UnitTerms* unit : units) {
      sum += unit->exposed(Slot::Kind::forward) + unit->exposed(twice ? Slot::Kind::backward_input : Slot::Kind::backward);
      if (twice) sum += unit->exposed(Slot::Kind::backward_weight);
    }
    return sum;
  }

  const System& system_;
  const workloads::Workload& workload_;
  const workloads::Schedule& schedule_;
  const workloads::Compiled& compiled_;
  const PlanCost& plan_;
  const ReplicaRules& rules_;
  Workspace& space_;
  const PipelineFormula& formula_;
  bool by_units_ = false;                             // the walk of units says how long the pipeline takes
  std::span<const double> nic_users_, memory_users_;  // as in share_among_stages()
};

}  // namespace

StepTerms step_terms(const System& system, const workloads::Workload& workload, const workloads::Compiled& compiled,
                     const workloads::ReplicaSync& sync, const PlanCost& plan, PriceBook& prices, Workspace& workspace, bool by_phase,
                     bool stages_share) {
  const ReplicaRules rules = replica_rules(system, workload, compiled, sync, plan.contentions.dp, stages_share);
  fill_stages(system, workload, rules, plan, prices, {}, workspace);
  const auto formula = [&] { return Formula(system, workload, compiled, plan, rules, prices, workspace, stages_share); };
  const Meeting meeting = stages_share ? meeting_of(system, rules, plan, prices) : Meeting{};
  for (int turn = 0; meeting.anywhere() && turn < turns_of_crowd; ++turn) {
    const double step_s = formula().terms(false).step_s;
    const std::vector<Crowd> crowds = crowds_of(workload, compiled, rules, meeting, plan, prices, workspace.stages, step_s);
    fill_stages(system, workload, rules, plan, prices, crowds, workspace);
  }
  return formula().terms(by_phase);
}

}  // namespace rehearse::sim
