// Over which scale-up fabric members talk, and how long a call takes that uses a supernode's and its nodes'.
#include <algorithm>
#include <map>
#include <tuple>

#include "sim/cost/communication.hpp"

namespace rehearse::sim {

using topology::LinkSpec;
using workloads::CollectiveKind;
using workloads::Communication;
using workloads::GroupShape;
using workloads::Pace;
using workloads::Transfer;

// Members of one node talk over the node's fabric, members of several nodes of a supernode over the supernode's.
const LinkSpec& CommunicationModel::scale_up(std::span<const int> members) const {
  if (cluster_.supernode_gpus == 0) return cluster_.intra;
  std::map<int, int> node_of_domain;
  for (const int rank : members) {
    const auto [it, added] = node_of_domain.try_emplace(domain_of(rank), node_of(rank));
    if (!added && it->second != node_of(rank)) return cluster_.supernode;
  }
  return cluster_.intra;
}

bool CommunicationModel::uses_two_fabrics(std::span<const int> members) const {
  if (&scale_up(members) != &cluster_.supernode || cluster_.intra_kind == topology::IntraNode::none) return false;
  const bool one = cluster_.intra_kind == topology::IntraNode::nvswitch &&
                   cluster_.supernode.effective_bytes_per_s() == cluster_.intra.effective_bytes_per_s();
  return !one;  // a switch of the node that is as fast as the supernode's is a part of it
}

// A GPU has a port on its node's fabric (in a mesh a link to every other GPU) and one on the supernode's.
double CommunicationModel::busiest_scale_up_s(std::span<const Transfer> transfers, std::span<const int> members) const {
  std::map<std::tuple<int, int, bool>, double> seconds;  // {rank, -1 or the other end of its link, outgoing}
  double most = 0;
  for (const Transfer& t : transfers) {
    const int from = members[static_cast<std::size_t>(t.from)], to = members[static_cast<std::size_t>(t.to)];
    if (from == to || domain_of(from) != domain_of(to)) continue;
    const bool inside = node_of(from) == node_of(to), mesh = inside && cluster_.intra_kind == topology::IntraNode::full_mesh;
    const double took = t.bytes / (inside ? cluster_.intra : cluster_.supernode).effective_bytes_per_s();
    const int fabric = inside ? -1 : -2;
    most = std::max({most, seconds[{from, mesh ? to : fabric, true}] += took, seconds[{to, mesh ? from : fabric, false}] += took});
  }
  return most;
}

// Sets the rate at which the busiest port of either fabric has carried all when intra_bytes have passed.
void CommunicationModel::let_both_fabrics_limit(CallPrice& price, const Communication& what, const GroupShape& group,
                                                std::span<const int> members) const {
  if (price.intra_bytes <= 0 || !uses_two_fabrics(members)) return;
  const Pace pace = price.collective->pace(what.kind, group);
  std::vector<Transfer> transfers;
  if (!price.sequential && (pace == Pace::even || pace == Pace::chunks)) {
    transfers = price.collective->volumes(what.kind, group, what.bytes);
  } else {  // one even ring in every domain
    transfers = workloads::CollectiveRegistry::get("ring").volumes(CollectiveKind::all_gather, group, 1);
    for (Transfer& t : transfers) t.bytes = price.intra_bytes / price.scale_up_overhead;
  }
  if (const double most = busiest_scale_up_s(transfers, members) * price.scale_up_overhead; most > 0)
    price.intra_bytes_per_s = price.intra_bytes / most;
}

}  // namespace rehearse::sim
