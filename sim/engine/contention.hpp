// Computation and communication that slow each other down while they overlap on a GPU: while a class of communication runs there, its
// compute speed is 1/alpha of that class (the largest alpha when there are several), and the ports that the class uses have bandwidth/beta
// while it computes.
#pragma once

#include <array>
#include <vector>

#include "sim/cost/gpu.hpp"
#include "sim/engine/comm_plan.hpp"
#include "sim/engine/machine.hpp"
#include "workloads/step_graph.hpp"

namespace rehearse::sim {

class Contention {
 public:
  // `flapping`: links of ports that slow_port() is told of.
  Contention(const Gpu& gpu, std::size_t ranks, const std::vector<PortLink>& ports, const std::vector<PortLink>& flapping,
             const std::vector<HostIndex>& hosts, Machine& machine);

  // Everything the ranks do is told here, before the machine is.
  void compute_starts(std::uint32_t rank) { computes(rank, true); }
  void compute_ends(std::uint32_t rank) { computes(rank, false); }
  void communication_starts(std::uint32_t rank, workloads::Phase phase, const CallPrice& price) { communicates(rank, phase, price, 1); }
  void communication_ends(std::uint32_t rank, workloads::Phase phase, const CallPrice& price) { communicates(rank, phase, price, -1); }
  // A fault slows a rank's computation from now on: to the speeds that contention_speeds() gave as the `which`-th slowdown; 0: none.
  void slow_gpu(std::uint32_t rank, std::size_t which);
  // The network port of a rank takes so many times as long from now on.
  void slow_port(std::uint32_t rank, double slowdown);

 private:
  static constexpr std::size_t classes = workloads::contended_phases.size();
  static constexpr std::array<double, port_kinds> all_one{1, 1, 1};
  struct RankState {
    bool computing = false;
    int communications = 0;                                     // under way, counted by port kind
    std::array<std::array<int, port_kinds>, classes> active{};  // [class][port kind]
    std::array<double, port_kinds> beta = all_one;              // by which its ports are slowed now
    std::size_t speed = 0;                                      // of the host now
    std::size_t slowdown = 0;                                   // by a fault: which
    double port_slowdown = 1;                                   // by a fault
  };
  struct LinkState {
    LinkIndex link = 0;
    double bytes_per_s = 0;
    double factor = 1;
    std::vector<std::pair<std::uint32_t, PortKind>> users;
    std::vector<std::uint32_t> ports_of;  // ranks of whose port a fault slows it
  };
  void computes(std::uint32_t rank, bool on);
  void communicates(std::uint32_t rank, workloads::Phase phase, const CallPrice& price, int change);
  void update(std::uint32_t rank);
  void update_links(std::uint32_t rank);
  [[nodiscard]] std::size_t speed_of(const RankState& state) const;
  [[nodiscard]] std::array<double, port_kinds> betas_of(const RankState& state) const;

  bool neutral_ = true;  // all coefficients are 1: nothing ever changes
  std::array<ContentionPair, classes> pairs_;
  std::vector<RankState> ranks_;
  std::vector<LinkState> links_;
  std::vector<std::vector<std::size_t>> links_of_rank_;
  const std::vector<HostIndex>& hosts_;
  Machine& machine_;
};

}  // namespace rehearse::sim
