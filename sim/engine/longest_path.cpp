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
  LongestPath(const StepGraph& graph, const Prices& prices) : graph_(graph), prices_(prices), missing_(graph.in_degree) {
    const std::size_t n = graph.ops.size();
    run_.arrive_s.assign(n, 0);
    run_.start_s.assign(n, 0);
    run_.end_s.assign(n, 0);
    for (const workloads::Joint& joint : graph.joints) absent_.push_back(joint.members.size());
  }

  Execution run() {
    for (OpId id = 0; id < graph_.ops.size(); ++id) {
      if (graph_.in_degree[id] == 0) arrive(id);
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
    const Op& op = graph_.ops[id];
    if (op.kind != OpKind::collective) {
      run_.start_s[id] = run_.arrive_s[id];
      return ready_.push_back(id);
    }
    if (--absent_[op.joint] > 0) return;
    const std::vector<OpId>& members = graph_.joints[op.joint].members;
    double start = 0;
    for (const OpId member : members) start = std::max(start, run_.arrive_s[member]);
    for (const OpId member : members) {
      run_.start_s[member] = start;
      ready_.push_back(member);
    }
  }

  [[nodiscard]] double duration(const Op& op) const {
    if (op.kind == OpKind::compute) return prices_.compute_s(op);
    // All members of a collective take the time that its first member's group takes.
    const std::uint32_t call = op.kind == OpKind::collective ? graph_.ops[graph_.joints[op.joint].members.front()].item : op.item;
    return prices_.calls[call].seconds() * graph_.calls[call].repeat;
  }

  void finish(OpId id) {
    run_.end_s[id] = run_.start_s[id] + duration(graph_.ops[id]);
    for (const OpId next : graph_.successors_of(id)) {
      run_.arrive_s[next] = std::max(run_.arrive_s[next], run_.end_s[id]);
      if (--missing_[next] == 0) arrive(next);
    }
  }

  const StepGraph& graph_;
  const Prices& prices_;
  std::vector<std::uint32_t> missing_;
  std::vector<std::size_t> absent_;
  std::vector<OpId> ready_;
  Execution run_;
};

}  // namespace

Execution longest_path(const StepGraph& graph, const Prices& prices) { return LongestPath(graph, prices).run(); }

}  // namespace rehearse::sim
