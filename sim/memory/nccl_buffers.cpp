// Sizes and rules are NCCL's (src/init.cc, src/channel.cc, src/graph/connect.cc and paths.cc, src/transport/{p2p,net,nvls}.cc,
// releases 2.10 to 2.27). They give what was published to the megabyte: 544 and 688 MiB for groups of two and of three and four A100
// (NVIDIA/nccl issue 964); docs/memory.md.
#include "sim/memory/nccl_buffers.hpp"

#include <algorithm>
#include <bit>

#include "workloads/rank_grid.hpp"

namespace rehearse::sim {
namespace {

using workloads::GroupKind;

constexpr double kib = 1024, mib = 1024 * kib;

// Buffers of LL (512 KiB), LL128 (4.7 MiB) and Simple (4 MiB) lie with the receiver, a flag (or Simple, where GPUs read) with the sender,
// each in pieces of 2 MiB. A connection in one direction, both ends counted: 10 + 2, or 6 + 6, between GPUs; 10 + 10 over a NIC that reads
// and writes them.
constexpr double pair_bytes = 12 * mib, nic_pair_bytes = 20 * mib;
// Buffers of sends and receives over the network, shared by all peers: steps of a chunk for each channel.
constexpr double shared_steps = 16, chunk_over_nvlink = 512 * kib, chunk_elsewhere = 128 * kib;
constexpr int most_channels = 32;
// Rings run twice over each path that was found; a path between GPUs takes a link of NVLink, of which NCCL fills twelve at most.
constexpr double link_bytes_per_s = 25e9;
constexpr int most_links = 12, most_network_channels = 16;
// To one peer over the network.
constexpr int network_channels_per_peer = 2;
// NVLS: by release, for each GPU that shares a domain on 16 channels and in both directions; as many heads as it takes.
constexpr int nvls_heads = 32;

int links_channels(const topology::ClusterSpec& cluster) {
  return 2 * std::clamp(static_cast<int>(cluster.intra.bandwidth_bytes_per_s / link_bytes_per_s), 1, most_links);
}

int collective_channels(const topology::ClusterSpec& cluster, const NcclGroup& group) {
  if (group.ranks == group.together) return links_channels(cluster);
  const int nics = std::max(1, std::min(group.together, cluster.rails_per_node()));
  const int channels = std::min(2 * nics, most_network_channels);
  return cluster.in_switch.bandwidth_bytes_per_s > 0 ? std::min(2 * channels, most_network_channels) : channels;  // Hopper and later
}

int power_of_two_from(int n) { return static_cast<int>(std::bit_ceil(static_cast<unsigned>(n))); }

double shared_bytes(const topology::ClusterSpec& cluster, const NcclGroup& group, int channels) {
  const bool one_domain = group.ranks == group.together && cluster.intra_kind != topology::IntraNode::pcie;
  return power_of_two_from(channels) * shared_steps * (one_domain ? chunk_over_nvlink : chunk_elsewhere);
}

double nvls_bytes_per_head(Nccl release) {
  if (release < Nccl::v2_18) return 0;
  return (release >= Nccl::v2_23 ? 32 : release >= Nccl::v2_19 ? 96 : 192) * mib;
}

// Rings, and trees: chains inside a domain, that run the ring's way and back; binary between domains, with two edges for each of them.
double rings_and_trees(const NcclGroup& group, int channels, bool trees) {
  const int domains = (group.ranks + group.together - 1) / group.together;
  double bytes = channels * (group.together > 1 ? pair_bytes : nic_pair_bytes);
  if (!trees) return bytes;
  if (group.together > 2) bytes += channels * pair_bytes;
  if (domains > 2) bytes += channels * nic_pair_bytes * 2 * (domains - 1) / domains / group.together;
  return bytes;
}

double peers_bytes(const topology::ClusterSpec& cluster, const NcclGroup& group, int peers) {
  const int near = std::min(peers, group.together - 1);
  const bool one_domain = group.ranks == group.together;
  const int channels = one_domain ? power_of_two_from(links_channels(cluster)) : network_channels_per_peer;
  const double received = peers > near ? shared_bytes(cluster, group, collective_channels(cluster, group)) : 0;
  return near * channels * pair_bytes + received;
}

// The communicators of a rank one after the other.
class Communicators {
 public:
  Communicators(const System& system, const workloads::Workload& workload)
      : system_(system), workload_(workload), grid_(workload.parallel) {}

  [[nodiscard]] double bytes() {
    const workloads::Parallel& p = workload_.parallel;
    const MemoryOverhead& stack = system_.software.memory;
    const NcclGroup tp = along(GroupKind::tp), pp = along(GroupKind::pp), dp = both(along(GroupKind::dp), along(GroupKind::cp));
    const bool sums = workload_.optimizer.zero_stage == 0 || (workload_.optimizer.all_reduces && workload_.optimizer.zero_stage < 3);
    if (stack.world_group) add({system_.gpus, std::min(system_.gpus, system_.cluster.domain_gpus())}, NcclReduces::small, 0, true);
    if (stack.model_group) add(both(tp, pp), NcclReduces::small, 0, stack.lone_groups);
    add(tp, p.sp ? NcclReduces::none : NcclReduces::large, 0, stack.lone_groups);
    add(dp, sums ? NcclReduces::large : NcclReduces::none, 0, stack.lone_groups);
    const bool ring = p.cp_comm == workloads::ContextComm::ring;
    add(along(GroupKind::cp), NcclReduces::none, ring ? std::min(2, p.cp - 1) : 0, false);
    add(pp, NcclReduces::none, std::min(2, p.pp - 1), false);
    const bool exchanges =
        workload_.experts.dispatcher == workloads::Dispatcher::alltoall;  // others have buffers of their own, not counted
    add(along(GroupKind::ep), NcclReduces::none, exchanges ? p.ep - 1 : 0, false);
    if (p.pp > 1 && workload_.model.tied_embeddings) add({2, pp.together == pp.ranks ? 2 : 1}, NcclReduces::large, 0, false);
    return bytes_;
  }

 private:
  [[nodiscard]] NcclGroup along(GroupKind kind) const {
    return {grid_.ranks_of(kind), grid_.ranks_in_domain(kind, system_.cluster.domain_gpus())};
  }
  static NcclGroup both(const NcclGroup& a, const NcclGroup& b) { return {a.ranks * b.ranks, a.together * b.together}; }

  void add(const NcclGroup& group, NcclReduces all_reduces, int peers, bool alone) {
    if (group.ranks == 1 && !alone) return;
    const MemoryOverhead& stack = system_.software.memory;
    const bool told = stack.nccl != Nccl::none && (system_.gpu.vendor == "nvidia" || system_.gpu.vendor == "amd");  // RCCL is made of NCCL
    bytes_ += told ? nccl_communicator_bytes(stack.nccl, system_.cluster, group, {all_reduces, peers, nvls_}) : stack.communicator_bytes;
  }

  const System& system_;
  const workloads::Workload& workload_;
  const workloads::RankGrid grid_;
  const bool nvls_ = std::ranges::find(system_.software.collectives, "nvls") != system_.software.collectives.end();
  double bytes_ = 0;
};

}  // namespace

double nccl_communicator_bytes(Nccl release, const topology::ClusterSpec& cluster, const NcclGroup& group, const NcclUse& use) {
  const int channels = group.ranks == 1 ? most_channels : collective_channels(cluster, group);
  const double shared = release >= Nccl::v2_14 ? shared_bytes(cluster, group, channels) : 0;
  if (group.ranks == 1) return shared;
  const bool as_needed = release >= Nccl::v2_23, reduces = use.all_reduces != NcclReduces::none;
  double bytes = shared + peers_bytes(cluster, group, use.peers);
  if (!as_needed || use.peers == 0 || reduces)
    bytes += rings_and_trees(group, channels, !as_needed || (reduces && group.together < group.ranks));
  const bool multicasts = use.nvls && cluster.in_switch.bandwidth_bytes_per_s > 0 && group.together > 2;
  if (multicasts && (!as_needed || use.all_reduces == NcclReduces::large))
    bytes += nvls_bytes_per_head(release) * std::min(group.together, nvls_heads);
  return bytes;
}

double communicators_bytes(const System& system, const workloads::Workload& workload) { return Communicators(system, workload).bytes(); }

}  // namespace rehearse::sim
