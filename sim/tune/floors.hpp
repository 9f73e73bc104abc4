// What a plan takes and needs at least, without its communication priced or its pipeline walked: a search leaves out what cannot be among
// the best. Both floors assume only that no operator, copy or exchange takes negative time or memory.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "sim/job/job.hpp"
#include "sim/result.hpp"
#include "workloads/operators.hpp"
#include "workloads/operators/sharded_operators.hpp"
#include "workloads/schedule.hpp"

namespace rehearse::sim {

// Whether a plan that has a smaller micro-batch, and differs in nothing else, needs no more memory than this one: each tensor grows with
// the micro-batch, and what is in flight at the peak is as many micro-batches in both, where there are enough of them to fill the pipeline
// twice. Not with uneven routing, which draws its tokens anew for every size, and not with tuned chunks, which shrink what more tokens
// need.
[[nodiscard]] bool needs_no_less_than_smaller(const workloads::Workload& workload);

// Of the plans of one job, for one thread. Remembers what units compute and how layers are split.
class Floors {
 public:
  explicit Floors(const Job& base) : base_(base) {}

  // A stage computes its units one after another, for every micro-batch: (7)-(12) without communication. Where a schedule does not split
  // its backwards, the first forward on stage j comes after one on every stage before it, and its last backward before one on each:
  //   max over j of [sum over i < j of (f_i + b_i), their first chunks'] + m (f_j + b_j).
  // Experts that get uneven tokens count nothing.
  [[nodiscard]] double step_s(const workloads::Workload& workload);

  // Equations (4), (25): weights, gradients and optimizer states after sharding and what the stack holds, of the fullest stage; activations
  // come on top. With what the allocator cannot give back.
  [[nodiscard]] double needed_bytes(const workloads::Workload& workload);

 private:
  // The model's ends, MTP modules as they are and recomputed in full, and behind them layers of each shape likewise, and those in bf16.
  static constexpr std::size_t embedding = 0, head = 1, prediction = 2, prediction_again = 3, first_layer = 4;
  static constexpr std::size_t kinds = 3, reaches = 4, part_count = first_layer + 4 * kinds * reaches;
  static std::size_t layer_part(const workloads::LayerShape& shape, bool again, bool wide);
  struct UnitFloor {
    double seconds = 0;                                 // forward, recomputation and backward, of computation alone
    double all = 0, experts = 0, frozen = 0, base = 0;  // parameters; base: without adapters
  };
  struct Units {
    workloads::Workload of;
    workloads::ShardedOperators operators;
    double standing = 0;
    std::array<UnitFloor, part_count> parts;
  };
  using Counts = std::array<int, part_count>;
  struct StageCounts {
    Counts all{}, first_chunk{};
  };
  using Shape =
      std::tuple<const workloads::Schedule*, int, int, int, std::vector<int>>;  // schedule, pp, vpp, full_layers, layers_per_stage

  [[nodiscard]] const Units& units(const workloads::Workload& workload);
  [[nodiscard]] const std::vector<StageCounts>& stages(const workloads::Workload& workload);

  const Job& base_;
  std::unordered_map<std::uint64_t, std::vector<std::unique_ptr<Units>>> units_;  // never walked through
  std::map<Shape, std::vector<StageCounts>> stages_;
};

}  // namespace rehearse::sim
