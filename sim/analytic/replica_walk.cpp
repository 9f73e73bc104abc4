#include "sim/analytic/replica_walk.hpp"

#include <algorithm>

#include "sim/analytic/two_streams.hpp"

namespace rehearse::sim {
namespace {

class ReplicaWalk {
  using Kind = workloads::Slot::Kind;

 public:
  ReplicaWalk(const ReplicaRules& rules, ChunkTerms units) : rules_(rules), sync_(rules.sync), units_(units), streams_(rules.pair) {}

  double seconds() {
    const bool each = sync_.shards_parameters || sync_.reduce_each_microbatch;
    if (sync_.shards_parameters && sync_.overlap_parameters) {
      for (std::size_t task = 0; task < 2; ++task) gather(task);
    }
    gathers_weights_ = sync_.gathers_weights && sync_.overlap_parameters;
    for (std::size_t u = 0; gathers_weights_ && u < units_.size(); ++u) streams_.queue(units_[u]->gather_s);
    streams_.compute(rules_.overhead_s);
    const int walked = std::min(rules_.microbatches, each ? typical : 2);
    double begin = 0, backlog = 0, copied = 0;  // of the last but one
    for (int i = 0; i + 1 < walked; ++i) {
      begin = streams_.now();
      backlog = streams_.backlog();
      copied = copied_;
      microbatch(false);
    }
    if (const int left = rules_.microbatches - walked; left > 0) {
      copied_ += left * (copied_ - copied);
      streams_.skip(left * (each ? streams_.now() - begin : alone_s()), each ? left * (streams_.backlog() - backlog) : 0);
    }
    microbatch(true);
    streams_.wait(reduced_);
    streams_.pass_until(copied_);
    return streams_.now();
  }

 private:
  // Micro-batches after which one is as long as the next.
  static constexpr int typical = 6;

  [[nodiscard]] double alone_s() const {
    double sum = 0;
    for (const UnitTerms* unit : units_) sum += unit->forward_s + unit->backward_s + unit->weight_s;
    return sum;
  }

  [[nodiscard]] const UnitTerms& unit(std::size_t task) const {
    const std::size_t n = units_.size(), k = task % (2 * n);
    return *units_[k < n ? k : 2 * n - 1 - k];
  }

  // ZeRO-3: of a task's parameters, in the order of tasks.
  void gather(std::size_t task) {
    const double seconds = gathers_s(task);
    gathered_[task % 2] = seconds > 0 ? streams_.queue(seconds) : 0;
  }
  [[nodiscard]] double gathers_s(std::size_t task) const {
    const Kind kind = task % (2 * units_.size()) < units_.size() ? Kind::forward : Kind::backward;
    return unit(task).gathers_s(kind);
  }
  // Not ahead. The first task's is, beside the stack's own time.
  [[nodiscard]] bool gathers_at_its_turn(std::size_t task) const {
    return !sync_.overlap_parameters || (task > 0 && task % (2 * units_.size()) == 0 && units_.front()->leads_root);
  }

  void microbatch(bool completes) {
    const std::size_t n = units_.size();
    double weights = 0;  // gathered up to this unit
    for (std::size_t k = 0; k < 2 * n; ++k) {
      const UnitTerms& now = unit(k);
      if (gathers_weights_ && k < n) streams_.wait(weights += now.gather_s);
      if (sync_.shards_parameters) wait_for_parameters(completes && k + 1 == 2 * n);
      work(now, k < n ? Kind::forward : Kind::backward_input);
      if (k >= n) {
        work(now, Kind::backward_weight);
        reduce(now, completes);
      }
    }
    gathers_weights_ = false;
  }

  void wait_for_parameters(bool last) {
    if (gathers_at_its_turn(task_)) {
      if (gathers_s(task_) > 0) streams_.pass_until(copied_);
      gather(task_);
    }
    const double mark = gathered_[task_ % 2];
    ++task_;
    if (task_ > 1 && !last && !gathers_at_its_turn(task_)) gather(task_);
    streams_.wait(mark);
  }

  void work(const UnitTerms& unit, Kind slot) {
    const bool ahead = sync_.shards_parameters && sync_.overlap_parameters;
    const double start = streams_.now(), queued = streams_.backlog();
    streams_.work(unit.pass(slot), ahead ? gathered_[task_ % 2] : 0);
    if (copied_ > start) streams_.pass(slowed_by_copies_s(start, queued - streams_.backlog()));
  }

  // Beside sums over copies where nothing else was sent: for so long after `start` something was.
  [[nodiscard]] double slowed_by_copies_s(double start, double sent_s) const {
    const double alone_s = streams_.now() - start - sent_s, copies_s = copied_ - start - sent_s, alpha = rules_.pair.alpha;
    return std::max(0.0, std::min(copies_s * (1 - 1 / alpha), alone_s * (alpha - 1)));
  }

  void reduce(const UnitTerms& unit, bool completes) {
    if (!sync_.reduce_each_microbatch && !(sync_.overlap_gradients && completes)) return;
    const double mark = streams_.queue(unit.reduce_s);
    if (sync_.overlap_gradients) {
      reduced_ = mark;
      // Its stream goes on without a gap, so that what is queued ends when that is over: where nothing slows it down.
      if (unit.copies_s > 0) copied_ = std::max(copied_, streams_.now() + streams_.backlog()) + unit.copies_s;
      if (unit.copies_delay_s > 0) streams_.queue(unit.copies_delay_s);
    } else {
      streams_.wait(mark);
    }
  }

  const ReplicaRules& rules_;
  const workloads::ReplicaSync& sync_;
  ChunkTerms units_;
  TwoStreams streams_;
  bool gathers_weights_ = false;
  std::size_t task_ = 0;
  double gathered_[2] = {0, 0}, reduced_ = 0;
  double copied_ = 0;  // when the last sum over copies is there
};

}  // namespace

bool walks_replicas(const workloads::Workload& workload, const workloads::Compiled& compiled, const ReplicaRules& rules) {
  const workloads::Schedule& schedule = *compiled.schedule;
  const workloads::PipelineShape shape{compiled.shape.stages, compiled.shape.chunks, workload.microbatches()};
  return rules.sync.replicated() && shape.stages == 1 && shape.chunks == 1 && schedule.warmup_forwards(shape, 0) == 1 &&
         !schedule.splits_backward() && !workload.overlap.ep && !workload.offload_activations;
}

double walk_replicas(const ReplicaRules& rules, ChunkTerms units) { return ReplicaWalk(rules, units).seconds(); }

}  // namespace rehearse::sim
