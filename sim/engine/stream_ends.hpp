// The first and the last operation of each stream of a graph's ranks: where one launch queues behind another.
#pragma once

#include <utility>
#include <vector>

#include "workloads/step_graph.hpp"

namespace rehearse::sim {

class StreamEnds {
 public:
  explicit StreamEnds(const workloads::StepGraph& graph)
      : ends_(graph.ranks.size() * workloads::stream_count, {workloads::no_op, workloads::no_op}) {
    for (workloads::OpId id = 0; id < graph.size(); ++id) {
      const workloads::Op op = graph.op(id);
      auto& [first, last] = ends_[op.rank * workloads::stream_count + static_cast<std::size_t>(op.stream)];
      if (first == workloads::no_op) first = id;
      last = id;
    }
  }

  // no_op where the rank is none of the graph's, or does nothing there.
  [[nodiscard]] workloads::OpId last(std::int64_t rank, std::size_t stream) const {
    const bool its = rank >= 0 && static_cast<std::size_t>(rank) < ends_.size() / workloads::stream_count;
    return its ? ends_[static_cast<std::size_t>(rank) * workloads::stream_count + stream].second : workloads::no_op;
  }
  // visit(rank, stream, first operation) of all that are used.
  template <class Visit>
  void each_first(Visit visit) const {
    for (std::size_t i = 0; i < ends_.size(); ++i) {
      if (ends_[i].first != workloads::no_op)
        visit(static_cast<std::int64_t>(i / workloads::stream_count), i % workloads::stream_count, ends_[i].first);
    }
  }

 private:
  std::vector<std::pair<workloads::OpId, workloads::OpId>> ends_;  // [rank * streams + stream]
};

}  // namespace rehearse::sim
