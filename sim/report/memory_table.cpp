#include "sim/report/memory_table.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace rehearse::sim {
namespace {

constexpr double gib_of_memory = 1024.0 * 1024.0 * 1024.0;

bool use_occurs(const StepResult& result, std::size_t use) {
  return std::ranges::any_of(result.memory.ranks, [&](const RankMemory& rank) { return rank.at_peak.bytes[use] > 0; });
}

std::string_view largest_use(const RankMemory& rank) {
  const auto& bytes = rank.at_peak.bytes;
  return name_of(static_cast<MemoryUse>(std::ranges::max_element(bytes) - bytes.begin()));
}

// The timeline has times; the formula has none.
std::string when(const RankMemory& rank) {
  const std::string time = rank.at_s > 0 ? fmt::format("at {:.1f} ms, ", 1e3 * rank.at_s) : "";
  return time + "in " + peak_place(rank);
}

}  // namespace

std::string in_gib(double bytes) { return fmt::format("{:.2f}", bytes / gib_of_memory); }

std::map<int, const RankMemory*> fullest_of_stages(const StepResult& result) {
  std::map<int, const RankMemory*> stages;
  for (const RankMemory& rank : result.memory.ranks) {
    const auto [it, added] = stages.try_emplace(rank.stage, &rank);
    if (!added && rank.needed_bytes() > it->second->needed_bytes()) it->second = &rank;
  }
  return stages;
}

std::string peak_place(const RankMemory& rank) {
  const std::string microbatch = rank.microbatch >= 0 ? fmt::format(", micro-batch {}", rank.microbatch) : "";
  return rank.operation + microbatch + (rank.step > 0 ? fmt::format(", step {}", rank.step) : "");
}

Table memory_table(const StepResult& result) {
  Table table{.columns = {{"stage"}}};
  for (std::size_t i = 0; i < memory_use_count; ++i) {
    if (use_occurs(result, i)) table.columns.push_back({std::string(name_of(static_cast<MemoryUse>(i)))});
  }
  for (const char* title : {"peak GiB", "needed", "of"}) table.columns.push_back({title});
  table.columns.push_back({"peak in", Align::left});
  for (const auto& [stage, rank] : fullest_of_stages(result)) {
    std::vector<std::string> row{fmt::format("{}", stage)};
    for (std::size_t i = 0; i < memory_use_count; ++i) {
      if (use_occurs(result, i)) row.push_back(in_gib(rank->at_peak.bytes[i]));
    }
    row.insert(row.end(), {in_gib(rank->peak_bytes()), in_gib(rank->needed_bytes()), in_gib(rank->capacity_bytes), rank->operation});
    table.rows.push_back(std::move(row));
  }
  return table;
}

namespace {

// Of the stage that asks for most.
std::string retaken(const StepResult& result) {
  double most = 0, longest_s = 0;
  for (const RankMemory& rank : result.memory.ranks) most = std::max(most, rank.retaken_bytes);
  for (const RankResult& rank : result.ranks) longest_s = std::max(longest_s, rank.phases[Phase::allocator]);
  if (most == 0) return "";
  return fmt::format(
      "\nso full that PyTorch's allocator gives blocks back and asks the device for {} GiB again in every step, which takes {:.0f} ms of "
      "it",
      in_gib(most), 1e3 * longest_s);
}

}  // namespace

std::string memory_line(const StepResult& result) {
  const RankMemory* fullest = result.memory.fullest();
  if (fullest == nullptr) return "";
  const HostMemory& host = result.memory.host;
  const std::string on_host =
      host.bytes > 0 ? fmt::format(", {} of {} GiB in the memory of node {}", in_gib(host.bytes), in_gib(host.capacity_bytes), host.node)
                     : "";
  const std::string by_share =
      !fullest->cache_simulated && fullest->stuck_bytes > 0
          ? fmt::format(", {} GiB of it for the allocator's cache by a fixed share of the tensors", in_gib(fullest->stuck_bytes))
          : "";
  return fmt::format("memory: {} of {} GiB on stage {}{}{}{}", in_gib(fullest->needed_bytes()), in_gib(fullest->capacity_bytes),
                     fullest->stage, by_share, on_host, retaken(result));
}

std::string shortage(const StepResult& result) {
  if (result.memory.fits()) return "";
  const RankMemory& rank = *result.memory.fullest();
  if (rank.fits()) {
    const HostMemory& host = result.memory.host;
    return fmt::format("{}: does not fit: the GPUs of node {} keep {} GiB in host memory of {} GiB; {} GiB are missing", result.method,
                       host.node, in_gib(host.bytes), in_gib(host.capacity_bytes), in_gib(host.bytes - host.capacity_bytes));
  }
  return fmt::format("{}: does not fit: rank {} (stage {}) needs {} of {} GiB {}; {} GiB are missing; the largest part is {}, {} GiB",
                     result.method, rank.rank, rank.stage, in_gib(rank.needed_bytes()), in_gib(rank.capacity_bytes), when(rank),
                     in_gib(rank.needed_bytes() - rank.capacity_bytes), largest_use(rank),
                     in_gib(*std::ranges::max_element(rank.at_peak.bytes)));
}

}  // namespace rehearse::sim
