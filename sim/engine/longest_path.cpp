#include <algorithm>

#include "sim/engine/critical_path.hpp"

namespace rehearse::sim {
namespace {

using workloads::Op;
using workloads::OpId;
using workloads::OpKind;
using workloads::StepGraph;

class LongestPath {
 public:
  LongestPath(const StepGraph& graph, const Prices& prices) : graph_(graph), prices_(prices), met_(graph.size()), present_(graph.joints()) {
    const std::size_t n = graph.size();
    run_.arrive_s.assign(n, 0);
    run_.end_s.assign(n, 0);
    run_.begin_s.assign(graph.joints(), 0);
  }

  Execution run() {
    for (OpId id = 0; id < graph_.size(); ++id) {
      if (graph_.in_degree(id) == 0) arrive(id);
    }
    while (!ready_.empty()) {
      const OpId id = ready_.back();
      ready_.pop_back();
      finish(id);
    }
    run_.step_s = step_length(graph_, run_);
    return std::move(run_);
  }

 private:
  void arrive(OpId id) {
    const Op op = graph_.op(id);
    if (op.kind != OpKind::collective) return ready_.push_back(id);
    const std::span<const OpId> members = graph_.members(op.joint);
    if (++present_[op.joint] < members.size()) return;
    double start = 0;
    for (const OpId member : members) start = std::max(start, run_.arrive_s[member]);
    run_.begin_s[op.joint] = start;
    ready_.insert(ready_.end(), members.begin(), members.end());
  }

  [[nodiscard]] double duration(const Op& op) const {
    if (op.kind == OpKind::compute) return prices_.compute_s(op);
    // All members of a collective take the time that its first member's group takes.
    const std::uint32_t call = op.kind == OpKind::collective ? graph_.op(graph_.members(op.joint).front()).item : op.item;
    return prices_.calls[call].seconds() * graph_.calls[call].repeat;
  }

  void finish(OpId id) {
    const Op op = graph_.op(id);
    run_.end_s[id] = run_.start_s(id, op) + duration(op);
    for (const OpId next : graph_.successors_of(id)) {
      run_.arrive_s[next] = std::max(run_.arrive_s[next], run_.end_s[id]);
      if (++met_[next] == graph_.in_degree(next)) arrive(next);
    }
  }

  const StepGraph& graph_;
  const Prices& prices_;
  std::vector<std::uint16_t> met_;      // [op] dependencies that have ended
  std::vector<std::uint32_t> present_;  // [joint] members that have arrived
  std::vector<OpId> ready_;
  Execution run_;
};

}  // namespace

Execution longest_path(const StepGraph& graph, const Prices& prices) { return LongestPath(graph, prices).run(); }

}  // namespace rehearse::sim
