// What it takes to make a cache fit that was written by one instance and is read by another. One difference, one component in alignments/,
// registered by name; a pair of pools needs the set of those that differ.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/registry.hpp"
#include "sim/cost/engine_habits.hpp"
#include "sim/cost/gpu.hpp"
#include "workloads/serving/instance_plan.hpp"

namespace rehearse::sim {

struct KvSide {
  const workloads::InstancePlan* plan = nullptr;
  const EngineHabits* habits = nullptr;
  const Gpu* gpu = nullptr;
  double bytes_per_token = 0;  // of the cache on one GPU, as this side keeps it
  // Seconds of a kernel of memory traffic.
  [[nodiscard]] double moving_s(double bytes) const;
};

// Kernels on one side before the cache is sent, or after it is there: bytes per token of the cache that they read and write in the memory
// of each GPU. What takes no kernel (another way, other peers, more copies) has none.
struct KvAlignmentWork {
  double sender_bytes_per_token = 0, receiver_bytes_per_token = 0;
  std::string reason;
  bool staged = false;  // through the memory of both hosts, whatever the job's path
};
// The reason, with what it costs.
[[nodiscard]] std::string text_of(const KvAlignmentWork& work);

class KvAlignment {
 public:
  static constexpr std::string_view kind = "kv alignment";
  virtual ~KvAlignment() = default;
  // Nothing where the two do not differ in it; else what the cheaper side does.
  [[nodiscard]] virtual std::optional<KvAlignmentWork> work(const KvSide& sender, const KvSide& receiver) const = 0;
};

using KvAlignmentRegistry = config::Registry<KvAlignment>;

// All that two sides need, in order of the components' names.
[[nodiscard]] std::vector<KvAlignmentWork> alignment_of(const KvSide& sender, const KvSide& receiver);

// A kernel that reads and writes the cache once, on the side where that is faster.
[[nodiscard]] KvAlignmentWork rewrite(const KvSide& sender, const KvSide& receiver, std::string reason);

}  // namespace rehearse::sim
