// How each communication of a step graph is carried out on the machine: legs (a delay, then a flow over links) and which leg waits for
// which.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/engine/call_loads.hpp"
#include "sim/engine/folding.hpp"
#include "sim/engine/machine.hpp"
#include "sim/engine/prices.hpp"
#include "workloads/rank_grid.hpp"
#include "workloads/step_builder.hpp"

namespace rehearse::sim {

struct Leg {
  double delay_s = 0;
  double bytes = 0;                               // 0: the delay only
  std::uint32_t first_link = 0, links = 0;        // in CommPlan::links
  std::uint32_t waits_for = 0;                    // how many legs must end first
  std::uint32_t first_release = 0, releases = 0;  // in CommPlan::releases: the legs that wait for it
};

struct CommPlan {
  std::vector<Leg> legs;
  std::vector<LinkIndex> links;
  std::vector<std::uint32_t> releases;
  HostIndex host = 0;  // of its first member
  int repeat = 1;      // the legs as a whole, one time after another
  [[nodiscard]] std::span<const LinkIndex> links_of(const Leg& leg) const { return std::span(links).subspan(leg.first_link, leg.links); }
  [[nodiscard]] std::span<const std::uint32_t> released_by(const Leg& leg) const {
    return std::span(releases).subspan(leg.first_release, leg.releases);
  }
};

// The plan of every call. Calls that are carried out alike share one.
class CommPlans {
 public:
  [[nodiscard]] const CommPlan& operator[](std::uint32_t call) const { return plans_[plan_of_[call]]; }
  // Over those that differ.
  [[nodiscard]] auto begin() const { return plans_.begin(); }
  [[nodiscard]] auto end() const { return plans_.end(); }
  void add(CommPlan plan) {
    plan_of_.push_back(static_cast<std::uint32_t>(plans_.size()));
    plans_.push_back(std::move(plan));
  }
  void add_as(std::uint32_t call) { plan_of_.push_back(plan_of_[call]); }  // as that call's

 private:
  std::vector<CommPlan> plans_;
  std::vector<std::uint32_t> plan_of_;  // [call]
};

// A link at a simulated rank's port, whose bandwidth suffers while that rank computes and communicates at once.
struct PortLink {
  std::uint32_t rank = 0;  // simulated rank
  PortKind kind = PortKind::scale_up;
  LinkIndex link = 0;
  double bytes_per_s = 0;
};

// Builds the machine's links and the plan of every call, before the machine is sealed.
//
// A collective is the flows of loads_of() (call_loads.hpp), whether one rank of each class is simulated or all are. Folded, a machine's
// link stands for all wires of its class, and a flow for the same flow of all groups of its class: it loads the link as often as they load
// one such wire together. Fidelity `step` runs every transfer of every round between the members.
class CommPlanner {
 public:
  // fold: what `folding` is of; null when every rank is simulated, or when ranks of a class share nothing.
  CommPlanner(const System& system, const workloads::RankGrid& grid, const CommunicationModel& model, const workloads::StepGraph& graph,
              const workloads::Folding& folding, const Prices& prices, Machine& machine, std::span<const HostIndex> hosts,
              const Fold* fold = nullptr);

  [[nodiscard]] CommPlans plans();
  [[nodiscard]] const std::vector<PortLink>& port_links() const { return port_links_; }
  // Links of network ports that are slow for a while inside the step.
  [[nodiscard]] const std::vector<PortLink>& flapping() const { return flapping_; }

 private:
  using Times = std::map<Wire, int>;  // how often a flow loads the wire that stands for a class

  // A plan while it is made: which leg waits for which, one by one.
  struct Draft : CommPlan {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> waits;  // {before, after}
    void wait(std::size_t before, std::size_t after);
    [[nodiscard]] CommPlan done() &&;
  };
  Draft plan(std::uint32_t call);
  Draft plan_closed(std::uint32_t call);
  Draft plan_flows(std::uint32_t call);
  Draft plan_rounds(std::uint32_t call);
  Draft plan_alike_rounds(std::uint32_t call);
  Draft plan_ring_rounds(std::uint32_t call);
  Draft pair_by_pair(std::uint32_t call);
  static void add_leg(Draft& plan, double delay_s, double bytes, const std::vector<LinkIndex>& links);
  [[nodiscard]] static bool one_way(const workloads::Call& call) { return call.what.group == workloads::GroupKind::pp; }
  void add_transfer(Draft& plan, const workloads::Transfer& transfer, double delay_s, double bytes, std::uint32_t call);
  int times_of_message(Wire stands_for, const workloads::Transfer& transfer, std::uint32_t call);
  // Of the machine's links: what each member's transfer puts on the wires of its class.
  std::vector<LinkIndex> links_of_alike(const std::vector<workloads::Transfer>& transfers, std::uint32_t call);
  [[nodiscard]] std::vector<Wire> wires_of(const workloads::Transfer& transfer, const std::vector<int>& members, std::uint32_t call) const;
  [[nodiscard]] std::vector<workloads::Round> rounds_of(std::uint32_t call) const;
  [[nodiscard]] bool alike(std::uint32_t call) const;
  [[nodiscard]] bool crosses(const workloads::Transfer& transfer, std::uint32_t call) const;
  [[nodiscard]] double alpha_s(const workloads::Transfer& transfer, std::uint32_t call) const;

  [[nodiscard]] bool shares_plans() const;
  [[nodiscard]] std::vector<Load> loads(std::uint32_t call) const;
  [[nodiscard]] std::vector<Load> alike_once(std::vector<Load> loads, std::uint32_t call) const;
  std::vector<LinkIndex> links(const Load& load, std::size_t index, std::uint32_t call);
  int times(Wire stands_for, const Load& load, std::size_t index, std::uint32_t call);
  const std::vector<Times>& times_of_all(std::uint32_t call);
  [[nodiscard]] std::vector<Times> count_messages(std::uint32_t call) const;
  [[nodiscard]] std::vector<Times> count_groups(std::uint32_t call) const;
  [[nodiscard]] Wire representative(Wire wire) const;

  LinkIndex link_of(Wire wire);
  LinkIndex own_link(const std::vector<int>& members, PortKind kind, double bytes_per_s);
  void note_port(std::uint32_t simulated, PortKind kind, LinkIndex link, double bytes_per_s);
  void note_flapping(const std::vector<int>& ranks, LinkIndex link, double bytes_per_s);
  [[nodiscard]] const std::vector<int>& members_of(std::uint32_t call) const { return graph_.groups[graph_.calls[call].group].members; }
  [[nodiscard]] std::uint64_t flow_of(std::uint32_t call) const { return system_.simulation.routing == Routing::ecmp ? call + 1 : 0; }
  [[nodiscard]] HostIndex host_of(int rank) const { return hosts_[folding_.class_of[static_cast<std::size_t>(rank)]]; }

  const System& system_;
  const CommunicationModel& model_;
  const workloads::StepGraph& graph_;
  const workloads::Folding& folding_;
  const Prices& prices_;
  Machine& machine_;
  std::span<const HostIndex> hosts_;
  const Fold* fold_;
  Wiring wiring_;
  workloads::RankGrid grid_;
  std::unordered_map<Wire, LinkIndex> links_;
  std::map<std::tuple<std::uint32_t, workloads::CollectiveKind, std::string, const void*>, std::vector<Times>> times_;
  std::map<std::tuple<std::uint32_t, int, int, int>, Times> times_of_messages_;  // by group, sender, receiver, rail
  std::vector<PortLink> port_links_, flapping_;
};

}  // namespace rehearse::sim
