#include "sim/calibrate/traced_collectives.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>

#include "config/input_error.hpp"
#include "sim/calibrate/median.hpp"

namespace rehearse::sim {
namespace {

using workloads::CollectiveKind;

struct Name {
  std::string_view name;  // as torch.distributed calls it
  CollectiveKind kind;
};
constexpr std::array names{Name{"allreduce", CollectiveKind::all_reduce},
                           Name{"allreduce_coalesced", CollectiveKind::all_reduce},
                           Name{"_allgather_base", CollectiveKind::all_gather},
                           Name{"allgather", CollectiveKind::all_gather},
                           Name{"allgather_into_tensor_coalesced", CollectiveKind::all_gather},
                           Name{"_reduce_scatter_base", CollectiveKind::reduce_scatter},
                           Name{"reduce_scatter", CollectiveKind::reduce_scatter},
                           Name{"reduce_scatter_tensor_coalesced", CollectiveKind::reduce_scatter},
                           Name{"broadcast", CollectiveKind::broadcast},
                           Name{"_broadcast_oop", CollectiveKind::broadcast},
                           Name{"all_to_all", CollectiveKind::all_to_all}};

double bytes_of_element(std::string_view dtype) {
  if (dtype == "BFloat16" || dtype == "Half" || dtype == "Short") return 2;
  if (dtype == "Double" || dtype == "Long") return 8;
  return dtype == "Byte" || dtype == "Char" || dtype == "Bool" || dtype.starts_with("Float8") ? 1 : 4;
}

struct SizedCall {
  CollectiveKind kind = CollectiveKind::all_reduce;
  std::vector<int> members;
  double bytes = 0;
  auto operator<=>(const SizedCall&) const = default;  // NOLINT(modernize-use-nullptr): the 0 it compares with
};

std::optional<SizedCall> call_of(const TracedCollective& collective) {
  const auto name = std::ranges::find(names, collective.name, &Name::name);
  if (name == names.end() || collective.ranks.size() < 2) return {};
  const double elements = std::max(collective.in_elements, collective.out_elements);  // the whole buffer
  if (elements <= 0) return {};
  return SizedCall{name->kind, collective.ranks, elements * bytes_of_element(collective.dtype)};
}

// What the ranks of a group saw of calls of one size, each in its order.
using SeenByRanks = std::vector<std::vector<double>>;

double seconds_of(const SeenByRanks& seen) {
  if (seen.size() == 1) return *std::ranges::min_element(seen.front());
  std::size_t calls = seen.front().size();
  for (const auto& rank : seen) calls = std::min(calls, rank.size());
  std::vector<double> shortest;
  for (std::size_t i = 0; i < calls; ++i) {
    double least = seen.front()[i];
    for (const auto& rank : seen) least = std::min(least, rank[i]);
    shortest.push_back(least);
  }
  return median(std::move(shortest));
}

int gpus_of(const std::vector<KinetoTrace>& traces) {
  int gpus = 1;
  for (const KinetoTrace& trace : traces) {
    gpus = std::max({gpus, trace.world, trace.rank + 1});
    for (const TraceKernel& kernel : trace.kernels) {
      if (!kernel.collective.ranks.empty()) gpus = std::max(gpus, std::ranges::max(kernel.collective.ranks) + 1);
    }
  }
  return gpus;
}

}  // namespace

TracedCollectives traced_collectives(const std::vector<KinetoTrace>& traces) {
  std::map<SizedCall, SeenByRanks> all;
  std::set<int> ranks;
  TracedCollectives out;
  for (const KinetoTrace& trace : traces) {
    std::map<SizedCall, std::vector<double>> mine;
    for (const TraceKernel& kernel : trace.kernels) {
      const auto call = call_of(kernel.collective);
      if (!call || kernel.end_us <= kernel.start_us) continue;
      mine[*call].push_back((kernel.end_us - kernel.start_us) * 1e-6);
      ++out.calls;
    }
    if (!mine.empty() && !ranks.insert(trace.rank).second)
      throw config::InputError(fmt::format("{} is another trace of rank {}", config::shown(trace.path), trace.rank),
                               "of each rank one; its kernels would count as another rank's");
    for (auto& [call, seconds] : mine) all[call].push_back(std::move(seconds));
  }
  const int gpus = gpus_of(traces);
  std::map<std::tuple<CollectiveKind, std::vector<int>>, MeasuredCollective> groups;
  for (const auto& [call, seen] : all) {
    MeasuredCollective& group = groups[{call.kind, call.members}];
    group.source = traces.front().path;
    group.kind = call.kind;
    group.members = call.members;
    group.gpus = gpus;
    group.times.push_back({call.bytes, seconds_of(seen)});
    out.of_one_rank = out.of_one_rank || seen.size() == 1;
  }
  for (auto& [key, group] : groups) out.measured.push_back(std::move(group));
  return out;
}

}  // namespace rehearse::sim
