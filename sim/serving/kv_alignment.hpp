// What it takes to make a cache fit that was written by one instance and is read by another. One difference, one component in alignments/,
// registered by name; a pair of pools needs the set of those that differ.
#pragma once

#include <string>
#include <vector>

#include "config/registry.hpp"
#include "sim/cost/engine_habits.hpp"
#include "sim/cost/gpu.hpp"
#include "workloads/serving/instance_plan.hpp"

namespace rehearse::sim {

// Where a cache is made to fit.
enum class AlignAt { cheapest, sender, receiver, host };
[[nodiscard]] const config::Names<AlignAt>& align_names();

struct KvSide {
  const workloads::InstancePlan* plan = nullptr;
  const EngineHabits* habits = nullptr;
  const Gpu* gpu = nullptr;
  double bytes_per_token = 0;   // of the cache on one GPU, as this side keeps it
  double host_bytes_per_s = 0;  // of its host's memory, the share of one GPU; 0: nothing is done there
  int page = 1;                 // tokens
  // Seconds of a kernel of memory traffic.
  [[nodiscard]] double moving_s(double bytes) const;
};

// Kernels on one side before the cache is sent, or after it is there, or in the memory of the receiver's host on its way: bytes per token
// of the cache of each GPU that they read and write there. What takes no kernel (another way, other peers, more copies) has none.
struct KvAlignmentWork {
  double sender_bytes_per_token = 0, receiver_bytes_per_token = 0, host_bytes_per_token = 0;
  double wire_share = 1;  // bytes on the wire of a sender's byte
  std::string reason;
  bool staged = false;  // through the memory of both hosts, whatever the job's path
};
// The reason, with what it costs.
[[nodiscard]] std::string text_of(const KvAlignmentWork& work);

class KvAlignment {
 public:
  static constexpr std::string_view kind = "kv alignment";
  virtual ~KvAlignment() = default;
  // The ways to make it fit; none where the two do not differ in it.
  [[nodiscard]] virtual std::vector<KvAlignmentWork> ways(const KvSide& sender, const KvSide& receiver) const = 0;
};

using KvAlignmentRegistry = config::Registry<KvAlignment>;

// Seconds of a token.
[[nodiscard]] double alignment_s(const KvAlignmentWork& work, const KvSide& sender, const KvSide& receiver);

// All that two sides need, in order of the components' names: of each the way at `at`; where it has none there, or nobody says where, the
// one that makes the cache smallest before it is sent, and of those the fastest.
[[nodiscard]] std::vector<KvAlignmentWork> alignment_of(const KvSide& sender, const KvSide& receiver, AlignAt at);

// A kernel that reads and writes the cache once, on either side or in the host's memory.
[[nodiscard]] std::vector<KvAlignmentWork> rewrites(const KvSide& sender, const KvSide& receiver, const std::string& reason);

}  // namespace rehearse::sim
