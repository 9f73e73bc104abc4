#include <algorithm>
#include <atomic>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <thread>
#include <utility>

#include "config/huge_pages.hpp"
#include "config/threads.hpp"
#include "sim/engine/execution.hpp"

namespace rehearse::sim {
namespace {

using workloads::Op;
using workloads::OpId;
using workloads::OpKind;
using workloads::StepGraph;
using workloads::Stream;

constexpr OpId none = std::numeric_limits<OpId>::max();

// What each operation of a program waits for on its own rank: the places of operation i's are before[first[i] .. first[i + 1]).
struct OwnBefore {
  std::vector<std::uint32_t> first, before;

  explicit OwnBefore(const workloads::RankProgram& program) : first(program.ops.size() + 1, 0) {
    each(program, [&](std::uint32_t, std::uint32_t after) { ++first[after + 1]; });
    std::partial_sum(first.begin(), first.end(), first.begin());
    before.resize(first.back());
    std::vector<std::uint32_t> next(first.begin(), first.end() - 1);
    each(program, [&](std::uint32_t at, std::uint32_t after) { before[next[after]++] = at; });
  }

  [[nodiscard]] std::span<const std::uint32_t> of(std::uint32_t place) const {
    return std::span(before).subspan(first[place], first[place + 1] - first[place]);
  }

 private:
  template <class Visit>
  static void each(const workloads::RankProgram& program, Visit visit) {
    for (std::uint32_t at = 0; at < program.ops.size(); ++at) {
      for (std::uint32_t i = program.first_successor[at]; i < program.first_successor[at + 1]; ++i) {
        if (program.ops[program.successors[i]].rank == program.ops[at].rank) visit(at, program.successors[i]);
      }
    }
  }
};

class Accounting {
 public:
  Accounting(const StepGraph& graph, const Execution& run) : graph_(graph), run_(run), phases_(graph.ranks.size()) { find_releases(); }

  std::vector<PhaseTimes> all() {
    const std::vector<double> origin = step_origins(graph_, run_);
    std::vector<double> busy_until = origin;
    std::vector<OpId> last_own(graph_.ranks.size(), none);
    each_block([&](const workloads::RankBlock& block) {
      const std::vector<Op>& ops = graph_.program(block).ops;
      for (OpId at = 0; at < ops.size(); ++at) {  // compute streams run in the order the operations were added
        const OpId id = block.first + at;
        const std::uint32_t rank = block.rank + ops[at].rank;
        if (last_own[rank] == none || run_.end_s[id] > run_.end_s[last_own[rank]]) last_own[rank] = id;
        if (ops[at].stream != Stream::compute) continue;
        const double start_s = run_.start_s(graph_, id);
        gap(rank, busy_until[rank], start_s, id);
        phases_[rank][ops[at].phase] += run_.end_s[id] - start_s;
        busy_until[rank] = std::max(run_.end_s[id], busy_until[rank] + run_.end_s[id] - start_s);
      }
    });
    const auto last = static_cast<OpId>(std::ranges::max_element(run_.end_s) - run_.end_s.begin());
    for (std::uint32_t rank = 0; rank < graph_.ranks.size(); ++rank)
      rest(rank, busy_until[rank], origin[rank] + run_.step_s, last_own[rank], last);
    return std::move(phases_);
  }

 private:
  // Of a large step on all processors. Blocks have ranks of their own; what is booked for one goes by its own operations in their order.
  template <class Visit>
  void each_block(Visit visit) const {
    constexpr std::size_t large = 1'000'000;  // operations
    constexpr std::size_t some = 16;          // blocks
    const std::span<const workloads::RankBlock> blocks = graph_.blocks();
    std::atomic<std::size_t> next = 0;
    config::on_threads(graph_.size() < large ? 1 : std::thread::hardware_concurrency(), [&] {
      for (std::size_t i = next.fetch_add(some); i < blocks.size(); i = next.fetch_add(some)) {
        for (const workloads::RankBlock& block : blocks.subspan(i, std::min(some, blocks.size() - i))) visit(block);
      }
    });
  }

  // Among those that end at one time the first.
  void keep_later(OpId& best, OpId candidate) const {
    if (best == none || run_.end_s[candidate] > run_.end_s[best] || (run_.end_s[candidate] == run_.end_s[best] && candidate < best))
      best = candidate;
  }

  // For each operation the dependency that ended last: of its own block, then a message from another.
  void find_releases() {
    config::reserve_on_huge_pages(released_by_, graph_.size());
    released_by_.assign(graph_.size(), none);
    for (const workloads::RankBlock& block : graph_.blocks()) {
      if (block.program >= own_before_.size()) own_before_.resize(block.program + 1UL);
      if (!own_before_[block.program]) own_before_[block.program].emplace(graph_.program(block));
    }
    each_block([&](const workloads::RankBlock& block) {
      const workloads::RankProgram& program = graph_.program(block);
      for (std::uint32_t at = 0; at < program.ops.size(); ++at) {
        for (std::uint32_t i = program.first_successor[at]; i < program.first_successor[at + 1]; ++i)
          keep_later(released_by_[block.first + program.successors[i]], block.first + at);
      }
    });
    for (const workloads::RankBlock& block : graph_.blocks()) {
      const std::vector<Op>& ops = graph_.program(block).ops;
      for (std::uint32_t at = 0; at < ops.size(); ++at) {
        if (ops[at].kind != OpKind::p2p) continue;
        for (const OpId after : graph_.successors_of(block.first + at)) keep_later(released_by_[after], block.first + at);
      }
    }
    if (graph_.blocks().size() == graph_.ranks.size()) {
      for (const workloads::RankBlock& block : graph_.blocks()) first_of_.push_back(block.first);
      first_of_.push_back(static_cast<OpId>(graph_.size()));
    }
    latest_.assign(graph_.joints(), none);
  }

  void book(std::uint32_t rank, Phase phase, double from, double to) { phases_[rank][phase] += std::max(0.0, to - from); }

  // The compute stream is idle from `from` to `to`, when `next` starts.
  void gap(std::uint32_t rank, double from, double to, OpId next) {
    if (to > from) own_chain(rank, from, to, next);
  }

  // From the last computation of a rank to the end of its step. `last` ends the step of all; a staggered rank just waits for its next step.
  void rest(std::uint32_t rank, double from, double to, OpId own, OpId last) {
    const double own_end = std::max(from, run_.end_s[own]);
    others(rank, own_end, to, graph_.staggered ? none : last);
    if (own_end > from) own_operation(rank, from, own_end, own);
  }

  // [from, to] before the start of a rank's operation: its own communication first, and before that whatever the others made it wait for.
  void own_chain(std::uint32_t rank, double from, double to, OpId op) {
    const double arrived = std::clamp(run_.arrive_s[op], from, to);
    book(rank, Phase::waiting, arrived, to);
    const auto [before, inside] = last_own_before(op, from);
    const double own_end = before == none ? from : std::clamp(run_.end_s[before], from, arrived);
    if (arrived > own_end) others(rank, own_end, arrived, released_by_[op]);
    if (own_end <= from) return;
    if (inside == before || inside == none) return own_operation(rank, from, own_end, before);
    const double inside_end = std::clamp(run_.end_s[inside], from, own_end);
    book(rank, graph_.op(before).phase, inside_end, own_end);
    if (inside_end > from) own_operation(rank, from, inside_end, inside);
  }

  // Of what an operation waits for on its own rank the one that ended last, and the one that did among those whose chain of own operations
  // began after `from`, when computation had ended. What began before, such as a gather of parameters, or waited for such, is exposed only
  // where nothing of that other chain goes on: so it is where computation stands between the parts of the chain, and the cut of the step
  // into operations changes nothing.
  [[nodiscard]] std::pair<OpId, OpId> last_own_before(OpId op, double from) const {
    std::pair<OpId, OpId> last{none, none};
    int candidates = 0;
    each_own_before(op, [&](OpId before) {
      keep_later(last.first, before);
      if (run_.end_s[before] > from) ++candidates;
    });
    if (candidates < 2) return {last.first, last.first};
    each_own_before(op, [&](OpId before) {
      if (run_.end_s[before] > from && began_after(before, from)) keep_later(last.second, before);
    });
    return last;
  }

  // Whether the chain of own operations that led to `op` began at or after `from`.
  [[nodiscard]] bool began_after(OpId op, double from) const {
    constexpr double rounding = 1e-12;  // `from` is a sum of lengths
    while (op != none && run_.end_s[op] > from) {
      if (run_.start_s(graph_, op) < from * (1 - rounding)) return false;
      OpId last = none;
      each_own_before(op, [&](OpId before) { keep_later(last, before); });
      op = last;
    }
    return true;
  }

  template <class Visit>
  void each_own_before(OpId op, Visit visit) const {
    const workloads::RankBlock& block = graph_.block_of(op);
    for (const std::uint32_t place : own_before_[block.program]->of(op - block.first)) visit(block.first + place);
  }

  void own_operation(std::uint32_t rank, double from, double to, OpId id) {
    const Op op = graph_.op(id);
    const double begin = std::clamp(run_.start_s(id, op), from, to);
    book(rank, op.phase, begin, to);
    if (begin > from) own_chain(rank, from, begin, id);
  }

  // [from, to] during which a rank does nothing itself, `cause` having ended at `to`: back along what released what.
  void others(std::uint32_t rank, double from, double to, OpId cause) {
    while (to > from && cause != none) {  // two exits in the loop: clang 14 drops the one for `none`
      const Op op = graph_.op(cause);
      const bool own = own_member(rank, cause, op) != none;
      const double begin = std::clamp(run_.start_s(cause, op), from, to);
      book(rank, own || op.kind == OpKind::p2p ? op.phase : Phase::bubble, begin, to);
      to = begin;
      cause = released_by_[last_arrival(cause, op)];
    }
    book(rank, Phase::bubble, from, to);
  }

  // The operation by which `rank` takes part in `id`, or none. A rank's own computation counts as its own.
  [[nodiscard]] OpId own_member(std::uint32_t rank, OpId id, const Op& op) const {
    if (op.rank == rank) return id;
    if (op.kind != OpKind::collective) return none;
    const std::span<const OpId> members = graph_.members(op.joint);
    if (first_of_.empty()) {
      const auto own = std::ranges::find_if(members, [&](OpId member) { return graph_.op(member).rank == rank; });
      return own == members.end() ? none : *own;
    }
    const auto own = std::ranges::lower_bound(members, first_of_[rank]);
    return own == members.end() || *own >= first_of_[rank + 1] ? none : *own;
  }

  [[nodiscard]] OpId last_arrival(OpId id, const Op& op) {
    if (op.kind != OpKind::collective) return id;
    const std::atomic_ref known(latest_[op.joint]);  // whoever asks first: all come to the same
    OpId latest = known.load(std::memory_order_relaxed);
    if (latest == none) {
      latest = *std::ranges::max_element(graph_.members(op.joint), {}, [&](OpId member) { return run_.arrive_s[member]; });
      known.store(latest, std::memory_order_relaxed);
    }
    return run_.arrive_s[latest] > run_.arrive_s[id] ? latest : id;
  }

  const StepGraph& graph_;
  const Execution& run_;
  std::vector<OpId> released_by_;
  std::vector<std::optional<OwnBefore>> own_before_;  // [program]
  std::vector<OpId> first_of_;  // [rank] its first operation, where graphs are built rank by rank; one behind the last
  std::vector<OpId> latest_;    // [joint] the first of those that arrived last, once asked for
  std::vector<PhaseTimes> phases_;
};

}  // namespace

// A staggered rank has waited for its first micro-batch since it ended the step before. What it does first without one (the host's time per
// step, the parameters of its first layers gathered) comes just before that: the longest chain of its own operations there.
std::vector<double> step_origins(const StepGraph& graph, const Execution& execution) {
  std::vector<double> origin(graph.ranks.size());
  if (!graph.staggered) return origin;
  std::vector<bool> begun(graph.ranks.size());
  std::vector<double> before(graph.size());     // [op] of its rank, in a row
  for (OpId id = 0; id < graph.size(); ++id) {  // every operation comes after what it waits for; compute streams run in this order
    const Op op = graph.op(id);
    const double start_s = execution.start_s(id, op), seconds = execution.end_s[id] - start_s;
    if (!begun[op.rank] && op.stream == Stream::compute && op.microbatch >= 0 && seconds > 0) {
      begun[op.rank] = true;
      origin[op.rank] = start_s - before[id];
    }
    for (const OpId after : graph.successors_of(id)) {
      if (graph.op(after).rank == op.rank) before[after] = std::max(before[after], before[id] + seconds);
    }
  }
  return origin;
}

double step_length(const StepGraph& graph, const Execution& execution) {
  if (!graph.staggered) {
    double last = 0;
    for (OpId id = 0; id < graph.size(); ++id) {
      if (execution.end_s[id] > last && execution.end_s[id] > execution.start_s(graph, id)) last = execution.end_s[id];
    }
    return last;
  }
  const std::vector<double> origin = step_origins(graph, execution);
  double longest = 0;
  for (OpId id = 0; id < graph.size(); ++id) {
    if (execution.end_s[id] > execution.start_s(graph, id)) longest = std::max(longest, execution.end_s[id] - origin[graph.op(id).rank]);
  }
  return longest;
}

std::vector<PhaseTimes> account(const StepGraph& graph, const Execution& execution) { return Accounting(graph, execution).all(); }

}  // namespace rehearse::sim
