// Copies between a GPU and the memory of its host, over a link that several GPUs may share.
#include <algorithm>

#include "sim/cost/communication.hpp"
#include "workloads/rank_grid.hpp"

namespace rehearse::sim {

using workloads::Communication;
using workloads::GroupKind;

int CommunicationModel::gpus_at_host(GroupKind kind) const {
  return kind == GroupKind::host_memory ? cluster_.gpus_per_node : cluster_.gpus_per_host_link;
}

int CommunicationModel::first_host_sharer(GroupKind kind, int rank) const {
  return rank - rank % cluster_.gpus_per_node % gpus_at_host(kind);
}

int CommunicationModel::host_sharers(GroupKind kind, int rank) const {
  const int gpus = grid_.size();
  return std::min(gpus_at_host(kind), gpus - first_host_sharer(kind, rank));
}

int CommunicationModel::host_sharers_of_stage(GroupKind kind, int rank) const {
  const int first = first_host_sharer(kind, rank), all = host_sharers(kind, rank);
  int own = 0;
  for (int other = first; other < first + all; ++other) own += grid_.coordinates(other).pp == grid_.coordinates(rank).pp ? 1 : 0;
  return own;
}

// In a PCIe box copies to and from the host use the GPU's scale-up port.
CallPrice CommunicationModel::price_copy(const Communication& what, int rank) const {
  CallPrice price;
  price.kind = CallKind::copy;
  price.algorithm = "copy";
  if (what.group == GroupKind::host_memory) {
    price.host_bytes = what.bytes;
    price.host_bytes_per_s = cluster_.host_memory.bytes_per_s / host_sharers(what.group, rank);
    price.host_alone_bytes_per_s = cluster_.host_memory.bytes_per_s / host_sharers_of_stage(what.group, rank);
    return price;
  }
  price.alpha_s = cluster_.host.latency_s;
  (one_port() ? price.intra_bytes : price.host_bytes) = what.bytes;
  (one_port() ? price.intra_bytes_per_s : price.host_bytes_per_s) = cluster_.host.effective_bytes_per_s() / host_sharers(what.group, rank);
  if (!one_port()) price.host_alone_bytes_per_s = cluster_.host.effective_bytes_per_s() / host_sharers_of_stage(what.group, rank);
  return price;
}

}  // namespace rehearse::sim
