// What one pipeline stage executes per micro-batch, as segments ready to be turned into operations (the step graph) or summed up (the
// formulas).
#pragma once

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "workloads/operators.hpp"
#include "workloads/plan.hpp"
#include "workloads/step_graph.hpp"

namespace rehearse::workloads {

struct ComputeSegment {
  std::vector<Operator> operators;
  int repeat = 1;  // times the list is run
  std::string name;
  std::shared_ptr<const PassQueue> queue;  // of the pass that the operators belong to, of one layer
};
struct CallSegment {
  Communication what;
  int repeat = 1;
};
struct RingSegment {
  RingAttention ring;
  int repeat = 1;
};
// A matrix product and the tensor-parallel collective before or after it, cut into `splits` pieces that overlap (equation 20). `product`
// and `collective` are one piece.
struct SplitSegment {
  Operator product;
  Communication collective;
  bool collective_first = true;
  int splits = 1;
  int repeat = 1;
};
// A collective and a product that do not depend on each other, started together: the reduction of an input gradient beside the product of
// the weight gradient.
struct BesideSegment {
  Operator product;
  Communication collective;
  int repeat = 1;
};
struct ExpertSegment {
  RoutedExperts experts;
};
using Segment = std::variant<ComputeSegment, CallSegment, RingSegment, SplitSegment, BesideSegment, ExpertSegment>;

// Equal layers share one program.
struct UnitProgram {
  std::vector<Segment> forward, recompute, backward;
  std::vector<Segment> backward_input, backward_weight;  // backward in two, for schedules that split it
  double parameters = 0;                                 // of dense matrices and experts
  double expert_parameters = 0;                          // of experts
  double offloaded_bytes = 0;                            // activations that move to the host's memory between forward and backward
  double offloaded_per_pair = 0;                         // and of them for every (token, expert) pair that a layer's experts get
};

enum class UnitKind : std::uint8_t { embedding, layer, prediction, head };

// The embedding, one layer (several equal ones at stage granularity), or the head.
struct Unit {
  std::shared_ptr<const UnitProgram> program;
  std::string name;      // "layer 12", "layers 0-7", "embedding", "head"
  int first_layer = -1;  // MTP modules count on after the model's layers
  UnitKind kind = UnitKind::layer;
  int layers = 1;           // that it stands for
  bool recomputed = false;  // in full
  LayerKind layer_kind = LayerKind::dense;
};

struct StageProgram {
  std::vector<std::vector<Unit>> chunks;  // [chunk], forward order
  double parameters = 0;                  // held by one GPU of the stage, before ZeRO
  double expert_parameters = 0;           // of those, the experts'
  std::vector<Operator> update;           // optimizer, after ZeRO
  HostUpdate on_host;                     // the part of it that runs there
};

// One per pipeline stage. Granularity op: a segment per operator and collective; layer: operators of a layer together; stage: equal layers
// together.
[[nodiscard]] std::vector<StageProgram> stage_programs(const Workload& workload, Granularity granularity);

// What a step does to gradients and parameters between data-parallel replicas, by ZeRO stage and overlap flags.
struct ReplicaSync {
  int ranks = 1;         // that hold the same parameters: dp * cp, twice that when the schedule mirrors
  int shard_ranks = 1;   // of those, over which ZeRO shards; the others hold copies (hybrid sharding)
  int expert_ranks = 1;  // that hold the same experts
  [[nodiscard]] int copies() const { return ranks / shard_ranks; }
  bool shards_parameters = false;       // ZeRO-3: gather before forward and before backward of each unit
  bool reduce_each_microbatch = false;  // ZeRO-3; ZeRO-2 without pipeline (sharded gradients cannot wait for the last micro-batch)
  bool overlap_gradients = false, overlap_parameters = false;
  bool gathers_weights = false;                 // ZeRO-1 and 2: all-gather of the updated weights
  double gradient_bytes = 4, weight_bytes = 2;  // per parameter
  int calls_per_unit = 1;                       // a unit's gather or reduction is cut into so many equal ones

  // Experts have replicas of their own: of `parameters` that contain `experts`, each part goes over its own group.
  [[nodiscard]] bool replicated() const { return ranks > 1 || expert_ranks > 1; }
  // One call each, of calls_per_unit, one after another. Dense parameters without ZeRO: an all-reduce; otherwise a reduce-scatter over the
  // shard group, then where there are copies an all-reduce of the shard over them.
  [[nodiscard]] std::vector<Communication> reductions(double parameters, double experts) const;
  [[nodiscard]] std::vector<Communication> gathers(double parameters, double experts) const;
  // What of them a rank holds when they are sharded.
  [[nodiscard]] double shard(double parameters, double experts) const {
    return (parameters - experts) / shard_ranks + experts / expert_ranks;
  }
};
[[nodiscard]] ReplicaSync replica_sync(const Workload& workload);

// Bytes of the word embedding's gradient that the first and the last stage add up when the embeddings are tied and pp > 1; else 0.
[[nodiscard]] double tied_embedding_bytes(const Workload& workload);

}  // namespace rehearse::workloads
