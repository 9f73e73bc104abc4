#include "workloads/collective.hpp"

#include <algorithm>
#include <map>
#include <stdexcept>
#include <tuple>

namespace rehearse::workloads {
namespace {

// [domain, ascending] its members.
std::vector<int> members_per_domain(const GroupShape& group) {
  std::vector<int> domains = group.domain, count;
  if (!std::ranges::is_sorted(domains)) std::ranges::sort(domains);
  for (std::size_t i = 0; i < domains.size(); ++i) {
    if (i == 0 || domains[i] != domains[i - 1]) count.push_back(0);
    ++count.back();
  }
  return count;
}

// doc/PERFORMANCE.md of nccl-tests: what a port carries, relative to the size of the buffer.
double bus_factor(CollectiveKind kind, int ranks) {
  const double share = (ranks - 1.0) / ranks;
  switch (kind) {
    case CollectiveKind::all_reduce:
      return 2 * share;
    case CollectiveKind::all_gather:
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_to_all:
      return share;
    case CollectiveKind::broadcast:
    case CollectiveKind::send_recv:
      return 1;
  }
  throw std::invalid_argument("not a collective");
}

}  // namespace

int GroupShape::domains() const { return static_cast<int>(members_per_domain(*this).size()); }

bool GroupShape::uniform() const {
  const auto count = members_per_domain(*this);
  return std::ranges::all_of(count, [&](int members) { return members == count.front(); });
}

// In round r an edge carries a block once that of round r-1 has passed it and, an alpha ago, has come over the edge before: the end of the
// last is the longest way of as many transfers, each over the same edge as the one before it or over the next. Longest are to go on with
// every transfer, to stay at a NIC or to lap from one to the next as often as there is time, or to queue on the last edge of a domain.
double stream_s(const ClosedForm& form, double alpha_intra_s, double alpha_inter_s, double intra_s, double inter_s) {
  const int rounds = form.rounds_intra + form.rounds_inter, laps = (rounds - 1) / (form.hops_inside + 1);
  const double intra = intra_s / rounds, inter = inter_s / rounds;
  const double lap = form.hops_inside * (alpha_intra_s + intra) + alpha_inter_s;
  return std::max({form.rounds_inter * (alpha_inter_s + inter) + form.rounds_intra * (alpha_intra_s + intra), alpha_inter_s + inter_s,
                   alpha_inter_s + laps * lap + (rounds - laps * form.hops_inside) * inter, form.hops_inside * alpha_intra_s + intra_s});
}

std::string_view name_of(GroupKind kind) {
  switch (kind) {
    case GroupKind::tp:
      return "tp";
    case GroupKind::cp:
      return "cp";
    case GroupKind::dp:
    case GroupKind::dp_cp:
      return "dp";
    case GroupKind::pp:
      return "pp";
    case GroupKind::ep:
      return "ep";
    case GroupKind::etp:
      return "etp";
    case GroupKind::edp:
      return "edp";
    case GroupKind::embedding:
      return "embedding";
    case GroupKind::shard:
      return "shard";
    case GroupKind::replicas:
      return "replicas";
    case GroupKind::to_host:
      return "d2h";
    case GroupKind::from_host:
      return "h2d";
    case GroupKind::host_memory:
      break;
  }
  return "host";
}

std::string_view name_of(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_reduce:
      return "all-reduce";
    case CollectiveKind::all_gather:
      return "all-gather";
    case CollectiveKind::reduce_scatter:
      return "reduce-scatter";
    case CollectiveKind::broadcast:
      return "broadcast";
    case CollectiveKind::all_to_all:
      return "all-to-all";
    case CollectiveKind::send_recv:
      return "send-recv";
  }
  throw std::invalid_argument("not a collective");
}

std::vector<Transfer> sum_per_pair(std::span<const Transfer> transfers) {
  std::map<std::tuple<int, int, int, InSwitch>, double> sum;
  for (const Transfer& transfer : transfers) sum[{transfer.from, transfer.to, transfer.rail_of, transfer.in_switch}] += transfer.bytes;
  std::vector<Transfer> out;
  out.reserve(sum.size());
  for (const auto& [pair, bytes] : sum) {
    const auto [from, to, rail_of, in_switch] = pair;
    out.push_back({.from = from, .to = to, .bytes = bytes, .rail_of = rail_of, .in_switch = in_switch});
  }
  return out;
}

std::vector<Transfer> Collective::volumes(CollectiveKind kind, const GroupShape& group, double bytes, int root) const {
  std::vector<Transfer> all;
  for (const Round& round : rounds(kind, group, bytes, root)) all.insert(all.end(), round.transfers.begin(), round.transfers.end());
  return pace(kind, group) == Pace::chunks ? all : sum_per_pair(all);
}

Bandwidth nccl_bandwidth(CollectiveKind kind, int ranks, double bytes, double seconds) {
  if (ranks < 1 || !(seconds > 0)) throw std::invalid_argument("a bandwidth needs ranks and a time");
  const double algbw = bytes / seconds;
  return {.algbw_bytes_per_s = algbw, .busbw_bytes_per_s = algbw * bus_factor(kind, ranks)};
}

}  // namespace rehearse::workloads
