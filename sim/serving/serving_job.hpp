// A serving job resolved: every name replaced by what it names, every default filled in, everything checked.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/keys.hpp"
#include "sim/cost/cost_model.hpp"
#include "sim/faults/scenario.hpp"
#include "sim/job/parts.hpp"
#include "sim/serving/instance.hpp"
#include "sim/serving/kv_alignment.hpp"
#include "sim/serving/service_fault.hpp"
#include "sim/serving/speculation.hpp"
#include "topology/cluster.hpp"
#include "workloads/serving/instance_plan.hpp"
#include "workloads/serving/load.hpp"

namespace rehearse::sim {

// Where the cache is fetched from: straight from GPU to GPU, or through the memory of both hosts.
enum class TransferPath { gpu_direct, host_staged };
// When: after the whole prompt; every chunk when it is computed; every layer of a chunk.
enum class TransferMode { after_prefill, chunkwise, layerwise };
[[nodiscard]] const config::Names<TransferMode>& transfer_mode_names();

struct TransferSpec {
  TransferMode mode = TransferMode::after_prefill;
  TransferPath path = TransferPath::gpu_direct;
  AlignAt align = AlignAt::cheapest;
  bool reserves_first = false;         // reserve: before-prefill, else on-pull
  bool prefill_answers_first = false;  // first_token: prefill, else decode
  double timeout_s = 30;               // of a hand-over, where something fails
};

struct PoolLimits {
  int sequences = 0, tokens = 0;  // of one attention replica; 0: as the engine has them
};

// Equal machines; a cluster of one kind is one part without a name.
struct ClusterPart {
  std::string name;
  topology::ClusterSpec cluster;  // with `nodes` as many as it has, 0: as many as are needed
  Gpu gpu;
  FewTokenCosts costs;  // of the GPU
};

// The network between parts, one direction of each pair; bandwidth 0: what the smaller side's NICs carry.
struct BetweenParts {
  topology::LinkSpec each;                                                  // of all pairs that have none of their own
  std::map<std::pair<std::size_t, std::size_t>, topology::LinkSpec> pairs;  // the earlier part first
  [[nodiscard]] const topology::LinkSpec& of(std::size_t one, std::size_t other) const {
    const auto found = pairs.find(std::minmax(one, other));
    return found == pairs.end() ? each : found->second;
  }
};

// A pool of equal instances.
struct Pool {
  std::string name;
  std::size_t part = 0;
  Role role = Role::both;
  int instances = 1;
  bool spread = false;  // every instance begins a node
  workloads::InstancePlan plan;
  std::shared_ptr<const Software> software;
  workloads::DType wanted = workloads::DType::bf16;  // products, where the GPU has them; else plan.precision.compute
  EngineHabits habits;                               // the software's, with what the job says otherwise
  PoolLimits limits, usual_limits;                   // of the job; of the software's file
  Speculation speculation;
  std::shared_ptr<const workloads::Model> draft;  // that proposes its tokens; nullptr: they cost nothing
  bool prefix_cache = false;                      // blocks of prompts stay in the cache for others that begin alike
  int kv_tokens = 0;                              // of the cache of one attention replica; 0: what the memory leaves
  int longest_prompt = 0;                         // that the router by-length sends here, in tokens; 0: any
  double price_per_s = 0;                         // of one GPU, in any currency
  std::string like;                               // in a deployment that tune makes: the job's pool that it has its other keys from

  [[nodiscard]] int gpus() const { return instances * plan.gpus(); }
};

// What is promised: of so large a share of the requests; 0: nothing.
struct Promise {
  double ttft_s = 0, tpot_s = 0, percentile = 0.9;
  bool both = false;  // in the same request, else each of the two
};

// What `tune` may choose from (docs/serving.md, "Tuning"). Empty lists: what the model and a node allow of tp, one of pp and dp, the pools'
// limits and precision, all ranks with attention replicas for ep.
enum class ServingGoal { cost, gpus, ttft, tpot, goodput, goodput_per_cost };
[[nodiscard]] constexpr bool is_of_rates(ServingGoal goal) { return goal >= ServingGoal::goodput; }
struct ServingTuneSpec {
  std::vector<int> inventory;       // GPUs by part
  std::vector<double> price_per_s;  // of one GPU by part, in any currency; 0: nobody has said
  std::vector<int> tp, pp, dp, ep, sequences, tokens;
  std::vector<workloads::ServingPrecision> precisions;
  std::vector<ServingGoal> goals{ServingGoal::cost};  // one of rates alone, or any of the others
  int keep = 20, confirm = 20;
  std::vector<int> lengths;       // tokens of prompts at which those of a role may be divided among plans, rising
  bool divides_anywhere = false;  // at others than these
  [[nodiscard]] bool divides() const { return divides_anywhere || !lengths.empty(); }
  bool confirms_all = false;  // as many are simulated; else fewer where no other can be better
};

struct ServingJob {
  std::string name;
  workloads::Model model;
  std::string cluster_name;
  std::vector<ClusterPart> parts;
  BetweenParts between;
  std::vector<Pool> pools;  // those of prompts before those of decoding, all of both, or one side alone
  TransferSpec transfer;
  std::string prompt_router = "least-requests", decode_router = "least-kv";
  workloads::LoadSpec load;
  Promise promise;
  std::optional<Role> isolate;
  std::uint64_t seed = 1;
  bool by_layers = false;                 // simulation.granularity: layer
  std::vector<ServiceFault> faults;       // in the simulation
  std::optional<FaultScenario> scenario;  // of whole days, for run
  double recovery_s = 600;  // until an instance works again, where a failure does not say: repair, and loading of weights if counted
  enum class Reload { counted, disk, storage, peer } reload = Reload::counted;  // where an instance that returns has its weights from
  std::optional<ServingTuneSpec> tune;
  std::vector<std::string> notes;  // what the reader should know of what was made of the job
  std::string resolved_yaml, input_hash;

  [[nodiscard]] int gpus() const;
  [[nodiscard]] bool apart() const { return pools.front().role != pools.back().role; }   // caches are handed over
  [[nodiscard]] bool uses_network() const { return apart() || reload == Reload::peer; }  // beside what its passes take
  [[nodiscard]] const std::string& router_of(Role role) const { return role == Role::decode ? decode_router : prompt_router; }
  [[nodiscard]] bool several(Role role) const { return std::ranges::count(pools, role, &Pool::role) > 1; }
};

// Throws config::InputError with position. Model names are also looked up in `models` when given.
[[nodiscard]] ServingJob read_serving_job(const config::Node& document, const std::string& name, const config::Node& models = {});

// Products in a format that the GPU does not have are computed in 16 bits, the weights widened on the way (Marlin, AWQ): false.
bool settle_precision(Pool& pool, const Gpu& gpu);
// The job's limits, else the engine's on this GPU with as many attention replicas; whether any is there because of the GPU.
bool settle_limits(Pool& pool, const Gpu& gpu);
// Of a pool's model that proposes tokens: on the same GPUs, in its precision.
[[nodiscard]] workloads::InstancePlan draft_plan(const Pool& pool);
// Why a pool's plan cannot be; nothing: it can.
struct PlanRefusal {
  std::string why, hint = {};
};
[[nodiscard]] std::optional<PlanRefusal> plan_refusal(const ServingJob& job, const Pool& pool);

[[nodiscard]] config::Shape serving_shape();

}  // namespace rehearse::sim
