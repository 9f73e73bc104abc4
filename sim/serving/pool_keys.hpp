// The keys of a pool and of a load, as a job writes them.
#pragma once

#include <optional>
#include <string>

#include "config/keys.hpp"
#include "sim/serving/serving_job.hpp"

namespace rehearse::sim {

struct Parallelism {
  int tp = 1, pp = 1, dp = 1;
  int ep = 0;  // 0: 1
};

struct ExpertHabits {
  workloads::Dispatcher dispatcher = workloads::Dispatcher::allgather;
  int redundant = 0;
  bool overlap = false;
};

struct SpeculationDocument {
  int tokens = 0;
  double acceptance = 0;
  config::Node draft;  // a name, a path or the content
};

// A pool as written; what is left out is the software's.
struct PoolDocument {
  Role role = Role::both;
  std::string part;
  int instances = 1;
  bool spread = false;
  Parallelism parallel;
  workloads::ServingPrecision precision;
  config::Node software;  // likewise
  std::optional<Batching> batching;
  std::optional<bool> chunked_prefill, graphs;
  PoolLimits limits;
  std::optional<double> memory_fraction;
  int kv_tokens = 0;
  std::optional<int> page;
  std::optional<KvLayout> layout;
  std::optional<Overflow> overflow;
  bool prefix_cache = false;
  ExpertHabits moe;
  SpeculationDocument speculative;
  int longest_prompt = 0;
  double price_per_s = 0;
};

[[nodiscard]] const config::Keys<PoolDocument>& pool_keys();
[[nodiscard]] const config::Keys<TransferSpec>& transfer_keys();
[[nodiscard]] const config::Keys<Promise>& promise_keys();
[[nodiscard]] const config::Keys<workloads::ServingPrecision>& serving_precision_keys();
[[nodiscard]] const config::Names<Role>& role_names();

// The load, with its files read relative to the job's. with_blocks: of each prompt, else they are left out.
[[nodiscard]] workloads::LoadSpec read_load(const config::Node& node, bool with_blocks);
[[nodiscard]] config::Shape load_shape();

}  // namespace rehearse::sim
