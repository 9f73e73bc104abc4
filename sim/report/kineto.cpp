#include "sim/report/kineto.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

namespace rehearse::sim {
namespace {

constexpr std::size_t listed_ranks = 30;  // kTruncatLength of torch/csrc/profiler/util.cpp

struct ElementType {
  std::string_view torch, nccl;
  double bytes;
};
constexpr ElementType element_types[] = {
    {"Float", "f32", 4},   {"BFloat16", "bf16", 2}, {"Half", "f16", 2}, {"Float8_e4m3fn", "f8e4m3", 1},
    {"Float4", "u8", 0.5}, {"Byte", "u8", 1},
};

const ElementType& element_type(std::string_view dtype) {
  const auto* found =
      std::find_if(std::begin(element_types), std::end(element_types), [&](const auto& type) { return type.torch == dtype; });
  return found != std::end(element_types) ? *found : *std::prev(std::end(element_types));
}

enum class Volume { same, gathers, scatters };

struct Kernel {
  std::string_view collective;  // as torch.distributed calls it
  std::string_view nccl;
  Volume volume;
  bool reduces;  // the name then holds the operation and the element type
};
constexpr Kernel kernels[] = {
    {"allreduce", "AllReduce", Volume::same, true},
    {"_allgather_base", "AllGather", Volume::gathers, false},
    {"_reduce_scatter_base", "ReduceScatter", Volume::scatters, true},
    {"reduce_scatter", "ReduceScatter", Volume::scatters, true},
    {"broadcast", "Broadcast", Volume::same, false},
};
// Everything made of point-to-point transfers: send, recv, all_to_all(v). Its name holds neither algorithm nor protocol.
constexpr Kernel send_recv{"", "SendRecv", Volume::same, false};

const Kernel& kernel_of(std::string_view collective) {
  const auto* found =
      std::find_if(std::begin(kernels), std::end(kernels), [&](const auto& kernel) { return kernel.collective == collective; });
  return found != std::end(kernels) ? *found : send_recv;
}

constexpr double low_latency_bytes = 64 * 1024;

std::string suffix_of(const TimelineCollective& collective) {
  if (collective.algorithm == "nvls" || collective.algorithm == "nvls-sharp") return "_NVLS_SIMPLE";
  if (collective.algorithm == "collnet") return "_COLLNET_DIRECT_SIMPLE";
  if (collective.algorithm == "nvls-tree") return "_NVLS_TREE_SIMPLE";
  const std::string_view by_size = collective.bytes <= low_latency_bytes ? "LL" : "SIMPLE", known = collective.protocol;
  return fmt::format("_{}_{}", collective.algorithm == "tree" ? "TREE" : "RING",
                     known.empty()       ? by_size
                     : known == "Simple" ? "SIMPLE"
                                         : known);
}

double received_bytes(const TimelineCollective& collective) {
  switch (kernel_of(collective.name).volume) {
    case Volume::gathers:
      return collective.bytes * collective.group_size;
    case Volume::scatters:
      return collective.bytes / collective.group_size;
    case Volume::same:
      break;
  }
  return collective.bytes;
}

std::string rank_list(const std::vector<int>& ranks) {
  if (ranks.size() <= listed_ranks) return fmt::format("[{}]", fmt::join(ranks, ", "));
  return fmt::format("[{}, ...]", fmt::join(ranks.begin(), ranks.begin() + listed_ranks, ", "));
}

}  // namespace

bool is_copy(const TimelineCollective& collective) { return collective.name.empty() || collective.name.starts_with("Memcpy"); }

std::string kernel_name(const TimelineCollective& collective) {
  if (is_copy(collective)) return collective.name;
  const Kernel& kernel = kernel_of(collective.name);
  const std::string operation = kernel.reduces ? fmt::format("_Sum_{}", element_type(collective.dtype).nccl) : "";
  const std::string suffix = &kernel == &send_recv ? "" : suffix_of(collective);
  return fmt::format("ncclDevKernel_{}{}{}(ncclDevKernelArgsStorage<4096ul>)", kernel.nccl, operation, suffix);
}

ProcessGroups::ProcessGroups(const std::vector<TimelineCollective>& collectives) {
  std::map<std::pair<std::string, std::vector<int>>, int> known;
  for (const TimelineCollective& collective : collectives) {
    if (is_copy(collective)) {
      number_of_.push_back(-1);
      continue;
    }
    const auto [it, added] = known.try_emplace({collective.group, collective.group_ranks}, static_cast<int>(groups_.size()));
    if (added) groups_.push_back({collective.group, collective.group_ranks});
    number_of_.push_back(it->second);
  }
}

std::string ProcessGroups::config(int rank) const {
  std::vector<std::string> entries;
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    const Group& group = groups_[i];
    if (rank >= 0 && std::ranges::find(group.ranks, rank) == group.ranks.end()) continue;
    entries.push_back(fmt::format(R"({{"pg_name":"{}","pg_desc":"{}","backend_config":"cuda:nccl","pg_size":{},"ranks":[{}]}})", i,
                                  group.kind, group.ranks.size(), fmt::join(group.ranks, ",")));
  }
  return fmt::format(R"("pg_count":{},"pg_config":[{}])", entries.size(), fmt::join(entries, ","));
}

std::string kernel_args(const TimelineCollective& collective, int process_group) {
  if (is_copy(collective)) return fmt::format(R"("bytes":{})", std::llround(collective.bytes));
  const double element = element_type(collective.dtype).bytes;
  return fmt::format(
      R"("Collective name":"{}","In msg nelems":{},"Out msg nelems":{},"Group size":{},"dtype":"{}","In split size":"[]","Out split size":"[]","Process Group Name":"{}","Process Group Description":"{}","Process Group Ranks":"{}")",
      collective.name, std::llround(collective.bytes / element), std::llround(received_bytes(collective) / element), collective.group_size,
      collective.dtype, process_group, collective.group, rank_list(collective.group_ranks));
}

}  // namespace rehearse::sim
