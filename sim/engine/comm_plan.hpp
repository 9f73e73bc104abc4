// How each communication of a step graph is carried out on the machine: legs (a delay, then a flow over links) and which leg waits for
// which.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/engine/machine.hpp"
#include "sim/engine/prices.hpp"
#include "topology/fabric.hpp"
#include "workloads/collective.hpp"
#include "workloads/step_builder.hpp"

namespace rehearse::sim {

struct Leg {
  double delay_s = 0;
  double bytes = 0;  // 0: the delay only
  HostIndex from = 0, to = 0;
  std::uint32_t first_link = 0, links = 0;  // in CommPlan::links
  std::uint32_t waits_for = 0;              // how many legs must end first
  std::vector<std::uint32_t> releases;
};

struct CommPlan {
  std::vector<Leg> legs;
  std::vector<LinkIndex> links;
  int repeat = 1;  // the legs as a whole, one time after another
  [[nodiscard]] std::span<const LinkIndex> links_of(const Leg& leg) const { return std::span(links).subspan(leg.first_link, leg.links); }
};

// host: the link to the host's memory, or that memory.
enum class PortKind : std::uint8_t { scale_up, nic, host };
inline constexpr std::size_t port_kinds = 3;

// A link at a simulated rank's port, whose bandwidth suffers while that rank computes and communicates at once.
struct PortLink {
  std::uint32_t rank = 0;  // simulated rank
  PortKind kind = PortKind::scale_up;
  LinkIndex link = 0;
  double bytes_per_s = 0;
};

// Builds the machine's links and the plan of every call, before the machine is sealed.
//
// folded: a representative's collective is a flow from its own port to its own port with the volume that each member sends and receives: by
// symmetry its ports carry the same load as if all members were there. With all ranks simulated, or with fidelity `step`, flows run between
// the real members over the fabric's routes.
class CommPlanner {
 public:
  CommPlanner(const Job& job, const CommunicationModel& model, const workloads::StepGraph& graph, const workloads::Folding& folding,
              const Prices& prices, Machine& machine, std::span<const HostIndex> hosts);

  [[nodiscard]] std::vector<CommPlan> plans();
  [[nodiscard]] const std::vector<PortLink>& port_links() const { return port_links_; }

 private:
  CommPlan plan(std::uint32_t call);
  CommPlan plan_copy(std::uint32_t call);
  CommPlan plan_closed(std::uint32_t call);
  CommPlan plan_folded(std::uint32_t call);
  CommPlan plan_transfers(std::uint32_t call, bool by_round);
  void add_leg(CommPlan& plan, double delay_s, double bytes, HostIndex from, HostIndex to, std::vector<LinkIndex> links) const;
  void add_transfer(CommPlan& plan, const workloads::Transfer& transfer, double delay_s, double bytes, std::uint32_t call);
  CommPlan port_by_port(std::uint32_t call);
  CommPlan pair_by_pair(std::uint32_t call);
  CommPlan whole_volume(std::uint32_t call);
  CommPlan round_by_round(std::uint32_t call);
  [[nodiscard]] const std::vector<int>& members_of(std::uint32_t call) const;
  [[nodiscard]] const workloads::Collective& algorithm_of(std::uint32_t call) const;
  void add_folded_leg(CommPlan& plan, PortKind kind, double bytes, double rate, double delay_s, std::uint32_t call);
  void add_port_leg(CommPlan& plan, int rank, PortKind kind, bool out, double bytes, std::uint32_t call);
  LinkIndex port(int rank, PortKind kind, bool out);
  [[nodiscard]] int host_load(int rank, workloads::GroupKind kind) const;
  LinkIndex host_link(int rank, workloads::GroupKind kind);
  LinkIndex own_link(int rank, PortKind kind, double bytes_per_s);
  [[nodiscard]] double port_rate(PortKind kind) const;
  const topology::Fabric& fabric();
  std::vector<LinkIndex> route(int from, int to, std::uint64_t flow, int rail);
  LinkIndex fabric_link(topology::LinkId id, double bytes_per_s);
  void add_slow_ports(const std::vector<int>& members, int from, std::vector<LinkIndex>& links);
  [[nodiscard]] double slowdown_of(topology::LinkKind kind, int rank) const;
  void note_port(std::uint32_t simulated, PortKind kind, LinkIndex link, double bytes_per_s);
  HostIndex host_of(int rank) const { return hosts_[folding_.class_of[rank]]; }

  const Job& job_;
  const CommunicationModel& model_;
  const workloads::StepGraph& graph_;
  const workloads::Folding& folding_;
  const Prices& prices_;
  Machine& machine_;
  std::span<const HostIndex> hosts_;
  std::unique_ptr<topology::Fabric> fabric_;
  std::map<std::tuple<int, PortKind, bool>, LinkIndex> ports_;
  std::map<std::pair<int, workloads::GroupKind>, LinkIndex> host_links_;
  std::map<topology::LinkId, LinkIndex> fabric_links_;
  std::map<std::tuple<int, int, int, std::uint64_t>, std::vector<LinkIndex>> routes_;
  std::vector<PortLink> port_links_;
  std::set<std::pair<std::uint32_t, LinkIndex>> noted_;  // in them: simulated rank and link
};

}  // namespace rehearse::sim
