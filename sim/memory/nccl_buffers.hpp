// Device memory of NCCL's communicators, by what they connect.
#pragma once

#include "sim/system.hpp"
#include "workloads/plan.hpp"

namespace rehearse::sim {

// A group of ranks as NCCL sees it.
struct NcclGroup {
  int ranks = 1;
  int together = 1;  // of them in one scale-up domain
};

// All-reduces over several domains go by trees too, large ones by NVLS where there is; everything else by rings, which NCCL holds to be a
// little faster than chains in one domain (src/graph/tuning.cc, baseLat).
enum class NcclReduces { none, small, large };

// What runs in it.
struct NcclUse {
  NcclReduces all_reduces = NcclReduces::none;
  int peers = 0;      // ranks that it sends to and receives from
  bool nvls = false;  // whether the library may multicast where the switch can
};

// Bytes of one communicator on the rank that holds most. `release` is not none.
[[nodiscard]] double nccl_communicator_bytes(Nccl release, const topology::ClusterSpec& cluster, const NcclGroup& group,
                                             const NcclUse& use);

// Bytes of all communicators of a rank, NCCL's or another library's.
[[nodiscard]] double communicators_bytes(const System& system, const workloads::Workload& workload);

}  // namespace rehearse::sim
