#include "sim/serving/transfer_lane.hpp"

#include <algorithm>
#include <cmath>

#include "workloads/serving/pass_operators.hpp"

namespace rehearse::sim {
namespace {

// Through the hosts' memory a cache goes in pieces, so that its three copies overlap (assumption: as Mooncake's slices, tens of pages).
constexpr double staging_bytes = 4.0 * 1024 * 1024;

KvSide side_of(const ServingJob& job, const Pool& pool) {
  return {&pool.plan, &pool.habits, &job.parts[pool.part].gpu, workloads::kv_bytes_per_token(pool.plan).per_gpu};
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
  const KvSide sender = side_of(job, from), receiver = side_of(job, to);
  TransferLane lane;
  lane.from_pool = from_pool;
  lane.to_pool = to_pool;
  lane.from_part = from.part;
  lane.to_part = to.part;
  lane.layers = job.model.layers;
  lane.page = from.habits.page;
  lane.pairs = workloads::kv_pairs(from.plan, to.plan);
  lane.alignment = alignment_of(sender, receiver);
  lane.staged = job.transfer.path == TransferPath::host_staged;
  for (const KvAlignmentWork& work : lane.alignment) {
    if (work.sender_bytes_per_token > 0) lane.sender_s_per_token += sender.moving_s(work.sender_bytes_per_token);
    if (work.receiver_bytes_per_token > 0) lane.receiver_s_per_token += receiver.moving_s(work.receiver_bytes_per_token);
    lane.staged = lane.staged || work.staged;
  }
  lane.wire_share = std::min(1.0, bytes_of(to.plan.precision.kv) / bytes_of(from.plan.precision.kv));
  lane.line_share = std::min(from.habits.transfer_share, to.habits.transfer_share);
  lane.engine_s = from.habits.transfer_start_s;
  if (!lane.staged) return lane;
  for (const Pool* pool : {&from, &to}) {
    const topology::LinkSpec& host = job.parts[pool->part].cluster.host;
    lane.engine_s += host.latency_s + staging_bytes / host.effective_bytes_per_s();
  }
  return lane;
}

}  // namespace rehearse::sim
