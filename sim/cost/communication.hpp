// The price of a communication alone on a described cluster: alpha terms, bytes through the busiest ports and the rates of those ports
// (equations 2 and 3). The formulas use the sum; the simulator turns the parts into a delay and flows.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sim/cost/cables.hpp"
#include "sim/cost/call_price.hpp"
#include "topology/cluster.hpp"
#include "workloads/collective.hpp"
#include "workloads/exchange.hpp"
#include "workloads/operators.hpp"
#include "workloads/plan.hpp"
#include "workloads/rank_grid.hpp"

namespace rehearse::sim {

class CommunicationModel {
 public:
  // `algorithm` forces one collective algorithm wherever it serves; "auto", and where it does not: the fastest of `library` (names of
  // algorithms) that fit the call's group, the earlier of two that take equally long. by_rounds: every round is simulated, so that the
  // latencies of a ring hide behind its bytes (workloads::stream_s); otherwise they add up, as libraries' own models and measured steps
  // say. protocol: of rings and trees, where their links say what it does; automatic: the fastest.
  CommunicationModel(const topology::ClusterSpec& cluster, const workloads::Workload& workload, std::string algorithm,
                     std::vector<std::string> library = workloads::rings_and_trees(), bool by_rounds = false,
                     topology::Protocol protocol = topology::Protocol::automatic);

  // members: global ranks in group order; point-to-point: {sender, receiver}. send_recv on a group is a ring shift: everybody to the next.
  [[nodiscard]] CallPrice price(const workloads::Communication& what, std::span<const int> members) const;

  [[nodiscard]] workloads::GroupShape shape(std::span<const int> members) const;
  // What an all-to-all with an exchange of its own puts on every member's ports.
  [[nodiscard]] workloads::PortLoads loads(const workloads::Communication& what, std::span<const int> members) const;
  // The share of its rate to the network that a GPU keeps when its NIC takes `slowdown` times as long: all, where PCIe is narrower still.
  [[nodiscard]] double left_of_nic(workloads::GroupKind kind, double slowdown) const;
  // [stage * stages + other] how many GPUs of the other pipeline stage send through the NIC of the stage's first GPU when all replicas
  // communicate, or are on its host; nothing where no two stages share one.
  [[nodiscard]] const std::vector<double>& stages_at_nics() const { return stages_at_nics_; }
  [[nodiscard]] std::vector<double> stages_at_hosts() const { return users_by_stage(true); }
  // Whether two ranks have the same place in their domains, and as many GPUs with whom they share a host.
  [[nodiscard]] bool sit_alike(int one, int other) const;
  // Whether all groups of a kind lie alike in nodes and domains: each dimension's block of ranks divides them or is made of whole ones.
  [[nodiscard]] bool groups_lie_alike() const { return groups_lie_alike_; }
  // 0: in one node, 1: in one supernode, 2: over the network.
  [[nodiscard]] std::size_t levels_between(int from, int to) const;
  // Alpha of one message between two ranks; reads: by a kernel that reads the memory of its peers. By ll and ll128 where their links have
  // it.
  [[nodiscard]] double latency_s(int from, int to, bool reads = false, topology::Protocol protocol = topology::Protocol::simple) const;
  // The job's GPUs that share a rank's link to the host, or its host's memory: so many from this rank on.
  [[nodiscard]] int first_host_sharer(workloads::GroupKind kind, int rank) const;
  [[nodiscard]] int host_sharers(workloads::GroupKind kind, int rank) const;

 private:
  struct Level {  // an equal-cost set of trunks that leaves a leaf or a pod
    int nodes = 0;
    double oversubscription = 1;
    bool groups_lie_alike = false;  // in its leaves or pods, as in nodes and domains
  };
  [[nodiscard]] int domain_of(int rank) const { return rank / cluster_.domain_gpus(); }
  [[nodiscard]] int node_of(int rank) const { return rank / cluster_.gpus_per_node; }
  [[nodiscard]] int gpus_at_host(workloads::GroupKind kind) const;
  [[nodiscard]] int host_sharers_of_stage(workloads::GroupKind kind, int rank) const;  // those of the rank's pipeline stage
  [[nodiscard]] const topology::LinkSpec& scale_up(std::span<const int> members) const;
  // Whether a call of these members uses links of nodes and of their supernode, for each of which a GPU has ports of its own.
  [[nodiscard]] bool uses_two_fabrics(std::span<const int> members) const;
  [[nodiscard]] double busiest_scale_up_s(std::span<const workloads::Transfer> transfers, std::span<const int> members) const;
  void let_both_fabrics_limit(CallPrice& price, const workloads::Communication& what, const workloads::GroupShape& group,
                              std::span<const int> members) const;
  [[nodiscard]] bool one_port() const { return cluster_.intra_kind == topology::IntraNode::pcie; }
  template <class Visit>
  void each_group(workloads::GroupKind kind, const Visit& visit) const {  // its members; each once
    std::vector<bool> seen(static_cast<std::size_t>(grid_.size()));
    for (int rank = 0; rank < grid_.size(); ++rank) {
      if (seen[static_cast<std::size_t>(rank)]) continue;
      const std::vector<int> members = grid_.group(kind, rank);
      if (std::ranges::find(members, rank) == members.end()) continue;  // embedding: stages in between
      for (const int member : members) seen[static_cast<std::size_t>(member)] = true;
      visit(members);
    }
  }
  using NicUsers = std::map<std::pair<int, int>, int>;  // {way of a NIC, pipeline stage}: GPUs that send over it
  [[nodiscard]] double nic_alone(double users) const;
  [[nodiscard]] double nic_share(double users) const;                     // what PCIe lets through of it
  [[nodiscard]] double network_share(double users, double factor) const;  // and the trunks
  [[nodiscard]] int nic_of(int rank) const;
  // shifts: every member sends to the next alone, as ring attention does.
  [[nodiscard]] NicUsers users_of_nics(workloads::GroupKind kind, bool shifts = false) const;
  void add_shifts(workloads::GroupKind kind, NicUsers& users) const;
  [[nodiscard]] std::vector<double> users_by_stage(bool host) const;
  struct Busiest {
    double all = 1, of_a_stage = 1;  // GPUs
  };
  [[nodiscard]] Busiest busiest_nic(const NicUsers& all) const;
  void set_network_share(CallPrice& price, const Busiest& users, double factor) const;
  void set_network_share(CallPrice& price, workloads::GroupKind kind, double factor) const;
  [[nodiscard]] double part_in_trunks(const workloads::PortLoads& loads, std::span<const int> members) const;
  enum class Crossing : std::uint8_t { channels, reduced, shifts };  // what leaves a leaf of each group
  [[nodiscard]] double trunk_factor(workloads::GroupKind kind, Crossing crossing) const;
  struct Crosser {
    int from = 0, to = 0, channel = 0;
  };
  [[nodiscard]] std::vector<Crosser> crossers(workloads::GroupKind kind, Crossing crossing, const std::vector<int>& members) const;
  [[nodiscard]] double busiest_crossing(workloads::GroupKind kind, const Level& level, Crossing crossing) const;
  [[nodiscard]] std::vector<std::size_t> axes_of(std::span<const int> members) const;
  [[nodiscard]] double cable_s(const workloads::Communication& what, const CallPrice& price, std::span<const int> members) const;
  [[nodiscard]] std::vector<std::vector<workloads::Transfer>> at_once(const workloads::Communication& what, const CallPrice& price,
                                                                      const workloads::GroupShape& group) const;
  void let_cables_limit(CallPrice& price, const workloads::Communication& what, std::span<const int> members) const;
  struct ByProtocol {
    double call_s = 0, intra_round_s = 0, inter_round_s = 0;
    double intra_overhead = 1, inter_overhead = 1;  // what a byte counts for
  };
  // Nothing where a link that the form uses does not say.
  [[nodiscard]] std::optional<ByProtocol> by_protocol(topology::Protocol protocol, const workloads::ClosedForm& form,
                                                      const topology::LinkSpec& intra) const;
  [[nodiscard]] bool better(const CallPrice& one, const CallPrice& other) const;
  // The fastest of a collective's protocols. price: all of it but what depends on them, by `simple`.
  [[nodiscard]] CallPrice with_protocol(const CallPrice& price, const workloads::ClosedForm& form, workloads::CollectiveKind kind,
                                        const topology::LinkSpec& intra) const;
  void list_shares(const workloads::Workload& workload);
  [[nodiscard]] CallPrice price_copy(const workloads::Communication& what, int rank) const;
  [[nodiscard]] CallPrice price_shift(const workloads::Communication& what, std::span<const int> members) const;
  [[nodiscard]] CallPrice price_exchange(const workloads::Communication& what, std::span<const int> members) const;
  [[nodiscard]] CallPrice price_with(const std::string& algorithm, const workloads::Communication& what, const workloads::GroupShape& group,
                                     std::span<const int> members) const;

  topology::ClusterSpec cluster_;
  workloads::RankGrid grid_;
  bool groups_lie_alike_ = true;
  std::string algorithm_;
  std::vector<std::string> library_;
  bool by_rounds_ = false;
  topology::Protocol protocol_ = topology::Protocol::automatic;
  int stages_ = 1;
  std::shared_ptr<Cables> cables_;  // null: a tree
  std::string place_;               // with cables: how ranks lie, as text
  bool pipeline_wraps_ = false;     // with cables: the last stage sends to the first
  std::vector<Level> levels_;
  std::vector<Busiest> nic_users_;  // [GroupKind] GPUs that send through one NIC at once
  Busiest shifting_nic_users_;      // of cp, when it shifts
  double shifting_trunk_factor_ = 1;
  std::vector<double> stages_at_nics_;
  std::vector<double> trunk_factor_;    // [GroupKind] times a GPU's share of its node's NICs that the trunks leave to each flow
  std::vector<double> reduced_factor_;  // the same where switches add flows up; empty when they do not
};

}  // namespace rehearse::sim
