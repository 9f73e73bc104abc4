// Ranks and their parallel groups: rank = coordinates in the mixed-radix number whose digits are the dimensions in `order`, innermost first
// (Megatron-LM's --use-tp-pp-dp-mapping and default orders are two of them).
#pragma once

#include <array>
#include <vector>

#include "workloads/operators.hpp"
#include "workloads/plan.hpp"

namespace rehearse::workloads {

struct Coordinates {
  int tp = 0, cp = 0, dp = 0, pp = 0;
};

class RankGrid {
 public:
  // mirrored: stages i and pp-1-i hold the same parameters (Schedule::mirrors).
  // shard_group: ranks of dp*cp over which ZeRO shards; 0 or dp*cp: all of them.
  explicit RankGrid(const Parallel& parallel, bool mirrored = false, int shard_group = 0);

  [[nodiscard]] int size() const { return size_; }
  [[nodiscard]] Coordinates coordinates(int rank) const;
  [[nodiscard]] int rank(const Coordinates& at) const;

  // Members of the group that `rank` belongs to, in group order (which is ascending in the varied coordinate; dp_cp: cp fastest).
  // dp_cp: all that hold the same parameters, in a mirrored grid those of the mirrored stage too (the lower stage's first).
  // embedding: the ranks of the first and the last stage.
  // shard: neighbours in dp_cp order, of one stage; replicas: the ranks with the same place in their shard groups.
  [[nodiscard]] std::vector<int> group(GroupKind kind, int rank) const;

  // Whether groups of a kind are all ranks along its dimensions, or the ends of one: no shard of them, and of one stage.
  [[nodiscard]] bool spans_dimensions(GroupKind kind) const;

  // The ranks of a group along one dimension: tp, cp, dp, pp, ep, etp or edp (of one stage); std::invalid_argument for others.
  [[nodiscard]] int ranks_of(GroupKind along) const { return dimension(along).size; }
  // And how many of them neighbour in a scale-up domain of so many ranks.
  [[nodiscard]] int ranks_in_domain(GroupKind along, int domain) const;

  // The rank of another stage in the same pipeline.
  [[nodiscard]] int at_stage(int rank, int stage) const;
  // Which of the ep parts of the experts this rank holds.
  [[nodiscard]] int expert_rank(int rank) const { return rank / ep_.stride % ep_.size; }
  // Whether the experts' dimensions (etp, ep, edp, in the order of tp, ep and dp) leave the pipeline stages where they are.
  [[nodiscard]] bool experts_keep_stages() const { return expert_pp_stride_ == pp_.stride; }
  // Whether the groups of a rank of one stage are those of its counterpart in another stage, moved by the distance of the two (pp and
  // embedding apart, which both share).
  [[nodiscard]] bool moves_with_stages() const { return experts_keep_stages() && !mirrored_; }
  [[nodiscard]] int replicas() const { return dp_.size; }  // dp

  // The ranks before and after in the pipeline; the ends wrap around (interleaved schedules send chunk k of the last stage to chunk k+1 of
  // the first).
  [[nodiscard]] int next_stage(int rank) const;
  [[nodiscard]] int previous_stage(int rank) const;

 private:
  [[nodiscard]] std::vector<int> same_parameters(int stage) const;
  struct Dimension {
    int size = 1;
    int stride = 1;
  };
  [[nodiscard]] const Dimension& dimension(GroupKind along) const;
  [[nodiscard]] std::vector<int> along(const Dimension& dimension, int rank) const;

  Dimension tp_, cp_, dp_, pp_;
  // The same ranks of a stage counted again, as Megatron-LM's expert groups do: cp has no digit, dp is what is left.
  Dimension etp_, ep_, edp_;
  int expert_pp_stride_ = 1;
  int size_ = 1;
  int shard_group_ = 1;
  bool mirrored_ = false;
};

[[nodiscard]] RankGrid rank_grid(const Workload& workload);

}  // namespace rehearse::workloads
