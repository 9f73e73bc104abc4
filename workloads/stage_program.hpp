// What one pipeline stage executes per micro-batch, unit by unit.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "workloads/operators.hpp"
#include "workloads/plan.hpp"
#include "workloads/segments.hpp"

namespace rehearse::workloads {

enum class UnitKind : std::uint8_t { embedding, layer, prediction, head };

// Of a unit or a stage on one GPU, before ZeRO.
struct Parameters {
  double all = 0;
  double experts = 0;  // of those, the routed experts'
  double layers = 0;   // and the layers', without adapters
  double frozen = 0;   // with LoRA: all but the adapters
  int tensors = 0;     // adapters apart
  Parameters& operator+=(const Parameters& more) {
    all += more.all;
    experts += more.experts;
    layers += more.layers;
    frozen += more.frozen;
    tensors += more.tensors;
    return *this;
  }
  [[nodiscard]] double trained() const { return all - frozen; }
  // Those of embedding, last norm and head; no adapter is theirs.
  [[nodiscard]] Parameters ends() const {
    const double adapters = frozen > 0 ? all - frozen : 0, rest = all - adapters - layers;
    return {rest, 0, 0, frozen > 0 ? rest : 0};
  }
};
[[nodiscard]] inline Parameters parameters_of(const UnitProgram& unit) {
  return {unit.parameters, unit.expert_parameters, unit.layer_parameters, unit.frozen_parameters, unit.tensors};
}

// The embedding, one layer, or the head.
struct Unit {
  std::shared_ptr<const UnitProgram> program;
  std::string name;      // "layer 12", "embedding", "head"
  int first_layer = -1;  // MTP modules count on after the model's layers
  UnitKind kind = UnitKind::layer;
  bool recomputed = false;  // in full
  LayerKind layer_kind = LayerKind::dense;
  Reach reach = Reach::sequence;
  int program_number = 0;   // among the distinct programs of the plan
  bool wide = false;        // its products are in bf16 where others' are in 8 or 4 bits
  Parameters exchanged{};   // what replicas gather and reduce of it: its own, of the root all that lies there, of the rest of that nothing
  bool leads_root = false;  // the embedding in FSDP's root: gathered when its forward comes, until its backward is over
};

// Without adapters.
[[nodiscard]] inline double base_parameters(const UnitProgram& unit) {
  return unit.frozen_parameters > 0 ? unit.frozen_parameters : unit.parameters;
}

struct StageProgram {
  std::vector<std::vector<Unit>> chunks;  // [chunk], forward order
  Parameters parameters;                  // held by one GPU of the stage, before ZeRO
  std::vector<Parameters> of_chunk;       // the same of each chunk
  std::vector<Operator> update;           // optimizer, after ZeRO
  HostUpdate on_host;                     // the part of it that runs there
};

// What a step does once with all that a GPU holds (`own`, before ZeRO; `updated` after it).
struct ReplicaSync;
[[nodiscard]] HeldParameters held_in_step(const Workload& workload, const ReplicaSync& sync, const Parameters& own, double updated);

// One per pipeline stage.
[[nodiscard]] std::vector<StageProgram> stage_programs(const Workload& workload, Cut cut = Granularity::layer);

// A call of the exchange between replicas, by numbers alone.
struct ReplicaCall {
  CollectiveKind kind = CollectiveKind::all_reduce;
  GroupKind group = GroupKind::dp_cp;
  double bytes = 0;
};
class ReplicaCalls {  // one after another
 public:
  void add(ReplicaCall call) { calls_[count_++] = call; }
  [[nodiscard]] const ReplicaCall* begin() const { return calls_.data(); }
  [[nodiscard]] const ReplicaCall* end() const { return calls_.data() + count_; }

 private:
  std::array<ReplicaCall, 3> calls_{};
  std::size_t count_ = 0;
};

// What a step does to gradients and parameters between data-parallel replicas, by ZeRO stage and overlap flags.
struct ReplicaSync {
  int ranks = 1;         // that hold the same parameters: dp * cp, twice that when the schedule mirrors
  int shard_ranks = 1;   // of those, over which ZeRO shards; the others hold copies (hybrid sharding)
  int expert_ranks = 1;  // that hold the same experts
  [[nodiscard]] int copies() const { return ranks / shard_ranks; }
  bool shards_parameters = false;       // ZeRO-3: gather before forward and before backward of each unit
  bool reduce_each_microbatch = false;  // ZeRO-3, and ZeRO-2 without a pipeline, but with no_sync
  bool overlap_gradients = false, overlap_parameters = false;
  bool copied = false;                          // ZeRO-3 gathers into, and reduces from, buffers of its own: on one rank too
  bool copies_beside = false;                   // hybrid sharding: sums of a shard over its copies have a stream of their own
  bool all_reduces = false;                     // although the optimizer is sharded
  bool gathers_weights = false;                 // ZeRO-1 and 2: all-gather of the updated weights
  bool from_host = false;                       // ZeRO-3: a shard is copied from the host before it is gathered
  double gradient_bytes = 4, weight_bytes = 2;  // per parameter
  double layer_weight_bytes = 2;                // of a layer's, as they are gathered, and without ZeRO-3 kept
  double kept_layer_bytes = 2;                  // of a layer's frozen ones in a shard of ZeRO-3
  double trained_weight_bytes = 2;              // of an adapter's
  bool by_tensor = false;                       // ZeRO-3: a layer's gather or reduction is cut into as many equal ones as it has tensors
  int calls_per_layer = 1;                      // else into so many
  int adapter_calls = 0;                        // of those, its adapters'
  GatheredAgain gathered_again = GatheredAgain::none;
  int owners = 0;             // of whole tensors: all of a stage's weights at once come by a broadcast from each; 0: tensors are cut
  double largest_tensor = 0;  // with owners, and of Muon, which has whole matrices: parameters
  double largest_matrix = 0;  // of Muon: of a layer

  // Experts have replicas of their own: of `parameters` that contain `experts`, each part goes over its own group.
  // One replica alone exchanges shards with its host where they lie there.
  [[nodiscard]] bool replicated() const { return ranks > 1 || expert_ranks > 1 || from_host; }
  // One call each, of calls_of(what), one after another. Dense parameters without ZeRO: an all-reduce; otherwise a reduce-scatter over the
  // shard group, then where there are copies an all-reduce of the shard over them, unless that is beside.
  [[nodiscard]] ReplicaCalls reduction_calls(const Parameters& what) const;
  // Behind the reduction, in a stream of their own (copies_beside): nothing elsewhere.
  [[nodiscard]] ReplicaCalls calls_of_copies(const Parameters& what) const;
  [[nodiscard]] ReplicaCalls gather_calls(const Parameters& what) const { return gather_calls(what, calls_of(what)); }
  // A table comes whole.
  [[nodiscard]] int calls_of(const Parameters& what) const {
    if (what.layers <= 0) return 1;
    return by_tensor ? std::max(1, what.tensors) : calls_per_layer;
  }
  // All of a stage's at once: of calls_at_once().
  [[nodiscard]] ReplicaCalls gather_calls_at_once(const Parameters& what) const { return gather_calls(what, calls_at_once()); }
  [[nodiscard]] int calls_at_once() const { return owners > 0 ? owners : calls_per_layer; }
  // Once more for the backward of a layer that was computed again in full: of calls_again(what).
  [[nodiscard]] ReplicaCalls again_calls(const Parameters& what) const;
  [[nodiscard]] int calls_again(const Parameters& what) const {
    return gathered_again == GatheredAgain::all ? calls_of(what) : gathered_again == GatheredAgain::adapters ? adapter_calls : 0;
  }
  // The same with their names.
  [[nodiscard]] std::vector<Communication> reductions(const Parameters& what) const;
  [[nodiscard]] std::vector<Communication> sums_of_copies(const Parameters& what) const;
  [[nodiscard]] std::vector<Communication> gathers(const Parameters& what) const;
  [[nodiscard]] std::vector<Communication> gathers_at_once(const Parameters& what) const;
  [[nodiscard]] std::vector<Communication> gathers_again(const Parameters& what) const;
  [[nodiscard]] double gathered_bytes(const Parameters& what) const {
    const double adapters = what.frozen > 0 ? what.trained() : 0;
    return what.layers * layer_weight_bytes + (what.all - what.layers - adapters) * weight_bytes + adapters * trained_weight_bytes;
  }
  // Of a rank's shard of ZeRO-3.
  [[nodiscard]] double frozen_shard_bytes(const Parameters& what) const {
    if (what.frozen == 0) return 0;
    return (what.layers * kept_layer_bytes + (what.frozen - what.layers) * weight_bytes) / shard_ranks;
  }
  // What of those that are trained the rank with most holds when they are sharded.
  [[nodiscard]] double shard(const Parameters& what) const { return shard(what.trained(), what.experts); }
  // What of them the rank with most holds when they are sharded.
  [[nodiscard]] double shard(double parameters, double experts) const {
    const double dense = parameters - experts;
    return std::max(dense / shard_ranks, std::min(dense, largest_tensor)) + experts / expert_ranks;
  }
  // What of them its optimizer updates, and keeps states of.
  [[nodiscard]] double updated(const Parameters& what) const { return shards_parameters || gathers_weights ? shard(what) : what.trained(); }

 private:
  [[nodiscard]] ReplicaCalls gather_calls(const Parameters& what, int calls) const;
};
// Gradients are reduced in every micro-batch: of ZeRO-3, and of ZeRO-2 without a pipeline, but with no_sync.
[[nodiscard]] bool reduces_each_microbatch(const Workload& workload);
// Of so many replicas, those over which ZeRO shards.
[[nodiscard]] int shard_ranks(const Workload& workload, int replicas);
[[nodiscard]] ReplicaSync replica_sync(const Workload& workload);
[[nodiscard]] ReplicaSync replica_sync(const Workload& workload, bool mirrors);  // mirrors: what its schedule says

// Bytes of the word embedding's gradient that the first and the last stage add up when the embeddings are tied and pp > 1; else 0.
[[nodiscard]] double tied_embedding_bytes(const Workload& workload);

}  // namespace rehearse::workloads
