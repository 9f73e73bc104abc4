#include "workloads/cycles.hpp"

#include <numeric>

#include "config/islands.hpp"

namespace rehearse::workloads {
namespace {

// Operations in the same place of one program as one, and members of a collective too: a circle of operations is one here.
class ByProgram {
 public:
  explicit ByProgram(const StepGraph& graph) : graph_(graph) {
    std::uint32_t nodes = 0;
    for (const RankBlock& block : graph.blocks()) {
      const std::size_t programs = first_.size();
      if (block.program >= programs) first_.resize(block.program + 1UL, none);
      if (first_[block.program] != none) continue;
      first_[block.program] = nodes;
      nodes += static_cast<std::uint32_t>(graph.program(block).ops.size());
      like_.push_back(&block);
    }
    as_ = config::Islands(nodes);
    join_members();
    for (const RankBlock* block : like_) edges_of(*block);
    edges_of_messages();
  }

  [[nodiscard]] bool has_cycle() {
    std::vector<std::uint32_t> waits(as_.size()), first(as_.size() + 1), ready;
    for (auto& [before, after] : edges_) {
      ++waits[after];
      ++first[before + 1];
    }
    std::partial_sum(first.begin(), first.end(), first.begin());
    std::vector<std::uint32_t> after_of(edges_.size()), next(first.begin(), first.end() - 1);
    for (const auto& [before, after] : edges_) after_of[next[before]++] = after;
    std::size_t left = 0;
    for (std::uint32_t node = 0; node < as_.size(); ++node) {
      if (as_.of(node) != node) continue;
      ++left;
      if (waits[node] == 0) ready.push_back(node);
    }
    for (; !ready.empty(); --left) {
      const std::uint32_t node = ready.back();
      ready.pop_back();
      for (std::uint32_t i = first[node]; i < first[node + 1]; ++i) {
        if (--waits[after_of[i]] == 0) ready.push_back(after_of[i]);
      }
    }
    return left > 0;
  }

 private:
  static constexpr std::uint32_t none = ~std::uint32_t{0};

  [[nodiscard]] std::uint32_t node(OpId id) {
    const RankBlock& block = graph_.block_of(id);
    return as_.of(first_[block.program] + id - block.first);
  }

  void join_members() {
    for (std::uint32_t joint = 0; joint < graph_.joints(); ++joint) {
      const std::span<const OpId> members = graph_.members(joint);
      for (const OpId member : members.subspan(1)) as_.join(node(member), node(members.front()));
    }
  }

  void edges_of(const RankBlock& block) {
    const RankProgram& program = graph_.program(block);
    for (std::uint32_t at = 0; at < program.ops.size(); ++at) {
      for (std::uint32_t i = program.first_successor[at]; i < program.first_successor[at + 1]; ++i)
        edges_.emplace_back(node(block.first + at), node(block.first + program.successors[i]));
    }
  }

  // What messages release on other ranks; mostly the same for all ranks of a program.
  void edges_of_messages() {
    std::vector<std::uint32_t> last(as_.size(), none);
    for (const RankBlock& block : graph_.blocks()) {
      const std::vector<Op>& ops = graph_.program(block).ops;
      for (std::uint32_t at = 0; at < ops.size(); ++at) {
        if (ops[at].kind != OpKind::p2p) continue;
        const std::uint32_t message = node(block.first + at);
        for (const OpId after : graph_.successors_of(block.first + at)) {
          if (after - block.first < ops.size() || last[message] == node(after)) continue;  // edges_of() has its own
          last[message] = node(after);
          edges_.emplace_back(message, last[message]);
        }
      }
    }
  }

  const StepGraph& graph_;
  std::vector<std::uint32_t> first_;    // [program] its first node
  config::Islands as_;                  // nodes that are one
  std::vector<const RankBlock*> like_;  // a block of each program
  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges_;
};

// Operation by operation.
bool stands_still(const StepGraph& graph) {
  std::vector<std::uint16_t> met(graph.size());
  std::vector<std::uint32_t> joint_met(graph.joints());
  std::vector<OpId> ready;
  std::size_t done = 0;
  const auto arrive = [&](OpId id) {
    const Op op = graph.op(id);
    if (op.kind != OpKind::collective) return ready.push_back(id);
    const std::span<const OpId> members = graph.members(op.joint);
    if (++joint_met[op.joint] == members.size()) ready.insert(ready.end(), members.begin(), members.end());
  };
  for (OpId id = 0; id < graph.size(); ++id) {
    if (graph.in_degree(id) == 0) arrive(id);
  }
  while (!ready.empty()) {
    const OpId id = ready.back();
    ready.pop_back();
    ++done;
    for (const OpId next : graph.successors_of(id)) {
      if (++met[next] == graph.in_degree(next)) arrive(next);
    }
  }
  return done != graph.size();
}

}  // namespace

// By program is enough to say that there is none, and quick; a circle of places may be none of operations.
bool has_cycle(const StepGraph& graph) { return ByProgram(graph).has_cycle() && stands_still(graph); }

}  // namespace rehearse::workloads
