#include "sim/report/kineto.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
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
  std::string_view suffix;
  Volume volume;
  bool reduces;  // the name then holds the operation and the element type
};
constexpr Kernel kernels[] = {
    {"allreduce", "AllReduce", "_RING_LL", Volume::same, true},
    {"_allgather_base", "AllGather", "_RING_LL", Volume::gathers, false},
    {"_reduce_scatter_base", "ReduceScatter", "_RING_LL", Volume::scatters, true},
    {"reduce_scatter", "ReduceScatter", "_RING_LL", Volume::scatters, true},
    {"broadcast", "Broadcast", "_RING_LL", Volume::same, false},
};
// Everything made of point-to-point transfers: send, recv, all_to_all(v).
constexpr Kernel send_recv{"", "SendRecv", "", Volume::same, false};

const Kernel& kernel_of(std::string_view collective) {
  const auto* found =
      std::find_if(std::begin(kernels), std::end(kernels), [&](const auto& kernel) { return kernel.collective == collective; });
  return found != std::end(kernels) ? *found : send_recv;
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

std::string ranks_text(const std::vector<int>& ranks) {
  if (ranks.size() <= listed_ranks) return fmt::format("[{}]", fmt::join(ranks, ", "));
  return fmt::format("[{}, ...]", fmt::join(ranks.begin(), ranks.begin() + listed_ranks, ", "));
}

}  // namespace

std::string nccl_kernel_name(const TimelineCollective& collective) {
  const Kernel& kernel = kernel_of(collective.name);
  const std::string operation = kernel.reduces ? fmt::format("_Sum_{}", element_type(collective.dtype).nccl) : "";
  return fmt::format("ncclDevKernel_{}{}{}(ncclDevKernelArgsStorage<4096ul>)", kernel.nccl, operation, kernel.suffix);
}

std::string nccl_args(const TimelineCollective& collective) {
  const double element = element_type(collective.dtype).bytes;
  const auto json_text = [](const std::string& text) { return nlohmann::json(text).dump(); };
  return fmt::format(
      R"("Collective name":{},"In msg nelems":{},"Out msg nelems":{},"Group size":{},"dtype":{},"Process Group Name":{},"Process Group Ranks":"{}")",
      json_text(collective.name), std::llround(collective.bytes / element), std::llround(received_bytes(collective) / element),
      collective.group_size, json_text(collective.dtype), json_text(collective.group), ranks_text(collective.group_ranks));
}

}  // namespace rehearse::sim
