#include "sim/serving/transfer_lane.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "sim/serving/capacity.hpp"
#include "workloads/serving/cache_bytes.hpp"

namespace rehearse::sim {
namespace {

// Through the hosts' memory a cache goes in pieces, so that its three copies overlap (assumption: as Mooncake's slices, tens of pages).
constexpr double staging_bytes = 4.0 * 1024 * 1024;

// Of the host's memory those have a share that stand there with it.
KvSide side_of(const ServingJob& job, const Pool& pool, bool staged) {
  const topology::ClusterSpec& cluster = job.parts[pool.part].cluster;
  const double host_bytes_per_s =
      staged ? cluster.host_memory.bytes_per_s / std::min(pool.plan.tp * pool.plan.pp, cluster.gpus_per_node) : 0;
  return {&pool.plan,
          &pool.habits,
          &job.parts[pool.part].gpu,
          workloads::kv_bytes_per_token(pool.plan).per_gpu,
          host_bytes_per_s,
          page_tokens(pool.plan, pool.habits, pool.speculation.tokens)};
}

// Pages of one layer's keys or values that the rank of the receiver with the most of them asks for, per token. Latent states are one kind.
double pieces_per_token(const ServingJob& job, const TransferLane& lane) {
  const double kinds = job.model.mla ? 1 : 2;
  std::map<int, double> layers;
  for (const workloads::KvPair& pair : lane.pairs)
    layers[pair.to] += caching_layers(job.model, pair.first_layer, pair.last_layer).attention;
  double most = 0;
  for (const auto& [rank, number] : layers) most = std::max(most, number);
  return kinds * most / lane.page;
}

// The first difference that an engine does not make fit. States cross as they are kept.
std::string not_aligned(const KvSide& sender, const KvSide& receiver, const Pool& from, const Pool& to) {
  const workloads::DType sent = from.plan.precision.state, kept = to.plan.precision.state;
  if (from.plan.model.mixer && sent != kept)
    return fmt::format("states of mixers are handed over as they are: pool {} keeps them in {}, pool {} in {} (precision: state)",
                       from.name, name_of(sent), to.name, name_of(kept));
  if (from.habits.cannot_align.empty() && to.habits.cannot_align.empty()) return "";
  for (const std::string& name : KvAlignmentRegistry::names()) {
    const std::vector<KvAlignmentWork> ways = KvAlignmentRegistry::get(name).ways(sender, receiver);
    if (ways.empty()) continue;
    for (const Pool* pool : {&from, &to}) {
      if (std::ranges::find(pool->habits.cannot_align, name) == pool->habits.cannot_align.end()) continue;
      return fmt::format("{} hands nothing over between caches that differ in {}: from pool {} to pool {} {}", pool->software->name, name,
                         from.name, to.name, ways.front().reason);
    }
  }
  return "";
}

}  // namespace

double TransferLane::in_pages(double tokens) const { return std::ceil(tokens / page) * page; }

double TransferLane::tokens_of(const CacheFront& front, int first, int last) const {
  const double whole = in_pages(static_cast<double>(front.tokens));
  if (front.layers <= first) return whole;
  const double ahead = in_pages(static_cast<double>(front.ahead));
  return whole + (ahead - whole) * (std::min(front.layers, last) - first) / (last - first);
}

double TransferLane::piece_tokens(const CacheFront& sent, const CacheFront& ready, int first, int last) const {
  return tokens_of(ready, first, last) - tokens_of(sent, first, last);
}

TransferLane transfer_lane(const ServingJob& job, std::size_t from_pool, std::size_t to_pool) {
  const Pool &from = job.pools[from_pool], &to = job.pools[to_pool];
  const auto align = [&](bool staged) { return alignment_of(side_of(job, from, staged), side_of(job, to, staged), job.transfer.align); };
  TransferLane lane;
  lane.from_pool = from_pool;
  lane.to_pool = to_pool;
  lane.from_part = from.part;
  lane.to_part = to.part;
  lane.layers = job.model.layers;
  lane.page = page_tokens(from.plan, from.habits, from.speculation.tokens);
  lane.pairs = workloads::kv_pairs(from.plan, to.plan);
  lane.staged = job.transfer.path == TransferPath::host_staged;
  lane.alignment = align(lane.staged);
  if (!lane.staged && std::ranges::any_of(lane.alignment, &KvAlignmentWork::staged)) {
    lane.staged = true;
    lane.alignment = align(true);
  }
  const KvSide sender = side_of(job, from, lane.staged), receiver = side_of(job, to, lane.staged);
  for (const KvAlignmentWork& work : lane.alignment) {
    lane.sender_s_per_token += sender.moving_s(work.sender_bytes_per_token);
    lane.receiver_s_per_token += alignment_s(work, sender, receiver) - sender.moving_s(work.sender_bytes_per_token);
    lane.wire_share *= work.wire_share;
  }
  lane.refused = not_aligned(sender, receiver, from, to);
  lane.line_share = std::min(from.habits.transfer_share, to.habits.transfer_share);
  constexpr int kinds_of_states = 2;  // of the convolution and of the scan
  lane.engine_s = from.habits.transfer_start_s + kinds_of_states * caching_layers(job.model).mixers * to.habits.transfer_piece_s;
  lane.pages_s_per_token = to.habits.transfer_piece_s * pieces_per_token(job, lane);
  if (!lane.staged) return lane;
  for (const Pool* pool : {&from, &to}) {
    const topology::LinkSpec& host = job.parts[pool->part].cluster.host;
    lane.engine_s += host.latency_s + staging_bytes / host.effective_bytes_per_s();
  }
  return lane;
}

std::optional<TransferLane> hand_over_refused(const ServingJob& job) {
  if (!job.model.mixer && std::ranges::all_of(job.pools, [](const Pool& pool) { return pool.habits.cannot_align.empty(); }))
    return std::nullopt;
  for (std::size_t from = 0; from < job.pools.size(); ++from) {
    for (std::size_t to = from + 1; to < job.pools.size(); ++to) {
      if (job.pools[from].role != Role::prefill || job.pools[to].role != Role::decode) continue;
      if (TransferLane lane = transfer_lane(job, from, to); !lane.refused.empty()) return lane;
    }
  }
  return std::nullopt;
}

}  // namespace rehearse::sim
