// How PyTorch's profiler (Kineto) writes a NCCL kernel or a copy, so that tools made for its traces recognise those of a simulated one.
// Sources: torch/csrc/distributed/c10d/ParamCommsUtils.hpp, torch/csrc/profiler/util.cpp (saveNcclMeta) and
// ProcessGroupNCCL.cpp (distributedInfo) of PyTorch 2.4 and later; kernel names: NCCL 2.20 and later; names of copies: CUPTI.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/timeline.hpp"

namespace rehearse::sim {

inline constexpr const char* nccl_version = "2.20";  // whose names these are

[[nodiscard]] bool is_copy(const TimelineCollective& collective);

// "ncclDevKernel_AllReduce_Sum_bf16_TREE_LL(ncclDevKernelArgsStorage<4096ul>)": with the algorithm that priced it, as far as NCCL has it
// (others are called RING), and its protocol; where the model knows none, NCCL's for its size: LL up to 64 KiB, else SIMPLE (Hu et al.
// 2025, "Demystifying NCCL", section III). Of a copy its name.
[[nodiscard]] std::string kernel_name(const TimelineCollective& collective);

// The communicators of a job, numbered as torch.distributed does: one for each kind of group and set of ranks.
class ProcessGroups {
 public:
  explicit ProcessGroups(const std::vector<TimelineCollective>& collectives);

  // Of a collective by its place in the list; -1: a copy has none.
  [[nodiscard]] int number_of(std::size_t collective) const { return number_of_[collective]; }
  [[nodiscard]] std::size_t size() const { return groups_.size(); }
  // The members "pg_count" and "pg_config" of distributedInfo, JSON without braces: the groups that a rank is in, or all for rank -1.
  [[nodiscard]] std::string config(int rank) const;

 private:
  struct Group {
    std::string kind;
    std::vector<int> ranks;
  };
  std::vector<Group> groups_;
  std::vector<int> number_of_;
};

// The members "Collective name" to "Process Group Ranks" of the event's args: JSON without braces; of a copy "bytes".
[[nodiscard]] std::string kernel_args(const TimelineCollective& collective, int process_group);

}  // namespace rehearse::sim
