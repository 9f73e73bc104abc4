// What the ranks share while a step graph is built (internal to the builder).
#pragma once

#include <functional>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "workloads/expert_layer.hpp"
#include "workloads/rank_grid.hpp"
#include "workloads/schedule.hpp"
#include "workloads/stage_program.hpp"
#include "workloads/step_builder.hpp"

namespace rehearse::workloads {

// Where a slot's first operation and its message to the neighbour stage are, for linking the ranks together at the end.
struct SlotEnds {
  OpId entry = no_op;
  OpId send = no_op;
};
class SlotTable {  // of forward and of backward or backward_input slots; weight gradients concern no other stage
 public:
  explicit SlotTable(const PipelineShape& shape) : shape_(shape), ends_(2UL * shape.chunks * shape.microbatches) {}
  SlotEnds& at(Slot::Kind kind, int chunk, int microbatch) {
    const std::size_t direction = kind == Slot::Kind::forward ? 0 : 1;
    return ends_[(direction * shape_.chunks + chunk) * shape_.microbatches + microbatch];
  }

 private:
  PipelineShape shape_;
  std::vector<SlotEnds> ends_;
};

struct ExpertWorkHash {
  std::size_t operator()(const ExpertWork& work) const {
    return std::hash<double>{}(work.pairs) ^ (static_cast<std::size_t>(work.what.pass) << 2U | static_cast<std::size_t>(work.again) << 1U);
  }
};

inline constexpr std::uint32_t no_group = ~std::uint32_t{0};

// What all ranks share while the graph is built.
struct Build {
  const Workload& workload;
  const Compiled& compiled;
  const Folding& folding;
  StepGraphBuilder graph;
  // By the segment or operator list they came from, how often it runs, and the groups of its queue's calls.
  std::map<std::tuple<const void*, int, std::vector<std::uint32_t>>, std::uint32_t> works;
  std::shared_ptr<ExpertLayer> experts = nullptr;  // of a model with experts
  std::unordered_map<ExpertWork, std::uint32_t, ExpertWorkHash> expert_works = {}, wide_works = {};
  std::optional<Workload> wide = std::nullopt;  // of layers in bf16, where a model with experts has them
  std::map<std::pair<std::uint32_t, std::vector<std::uint32_t>>, std::uint32_t> works_alike = {};
  std::map<GroupKind, std::vector<std::uint32_t>> groups = {};  // [global rank]; no_group until somebody asks

  std::uint32_t work_of(const void* origin, const std::vector<Operator>& operators, int repeat,
                        const std::shared_ptr<const PassQueue>& queue = nullptr, const std::vector<std::uint32_t>& queue_groups = {}) {
    const auto [it, added] = works.try_emplace({origin, repeat, queue_groups}, 0);
    if (added) it->second = graph.add_work({operators, repeat, false, queue, queue_groups, {}});
    return it->second;
  }
  // Of a segment that pairs it with a collective.
  std::uint32_t work_of_pair(const void* origin, const Operator& product) {
    const auto [it, added] = works.try_emplace({origin, 1, {}}, 0);
    if (added) it->second = graph.add_work({.operators = {product}, .in_pair = true});
    return it->second;
  }
  // The same work where its queue's calls are other groups'.
  std::uint32_t work_like(std::uint32_t like, const std::vector<std::uint32_t>& queue_groups) {
    if (graph.work(like).queue_groups == queue_groups) return like;
    const auto [it, added] = works_alike.try_emplace({like, queue_groups}, 0);
    if (!added) return it->second;
    Work work = graph.work(like);
    work.queue_groups = queue_groups;
    return it->second = graph.add_work(std::move(work));
  }
  // In a layer in bf16 its operators stand for it.
  std::uint32_t work_of(const ExpertWork& work, int layer) {
    const bool in_bf16 = is_wide(workload, layer);
    const auto [it, added] = (in_bf16 ? wide_works : expert_works).try_emplace(work, 0);
    if (!added) return it->second;
    Work made;
    if (in_bf16)
      made.operators = operators_of(*wide, work);
    else
      made.experts = work;
    return it->second = graph.add_work(std::move(made));
  }
  // The group of this kind that a rank is in.
  std::uint32_t group_of(GroupKind kind, int global) {
    std::vector<std::uint32_t>& known = groups[kind];
    if (known.empty()) known.assign(folding.class_of.size(), no_group);
    if (known[global] != no_group) return known[global];
    std::vector<int> members = compiled.grid.group(kind, global);
    std::set<std::uint32_t> folded;
    for (const int member : members) folded.insert(folding.class_of[member]);
    const std::vector<int> all = members;
    const std::uint32_t index = graph.add_group(kind, std::move(members), {folded.begin(), folded.end()});
    for (const int member : all) known[member] = index;
    return known[global] = index;
  }
  // A simulated rank and one of another stage, to which it sends.
  std::uint32_t pair_of(std::uint32_t rank, int peer) {
    return graph.add_group(GroupKind::pp, {folding.ranks[rank].rank, peer}, {rank, folding.class_of[peer]});
  }
  std::uint32_t overhead_work() {
    const auto [it, added] = works.try_emplace({this, 1, {}}, 0);
    if (added) it->second = graph.add_work({{}, 1, true, nullptr, {}, {}});
    return it->second;
  }
};

}  // namespace rehearse::workloads
