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
  Contention(const Gpu& gpu, std::size_t ranks, const std::vector<PortLink>& ports, const std::vector<HostIndex>& hosts, Machine& machine);

  // Everything the ranks do is told here, before the machine is.
  void compute_starts(std::uint32_t rank) { computes(rank, true); }
  void compute_ends(std::uint32_t rank) { computes(rank, false); }
  void communication_starts(std::uint32_t rank, workloads::Purpose purpose, const CallPrice& price) {
    communicates(rank, purpose, price, 1);
  }
  void communication_ends(std::uint32_t rank, workloads::Purpose purpose, const CallPrice& price) {
    communicates(rank, purpose, price, -1);
  }

 private:
  static constexpr std::size_t purposes = 9;
  struct RankState {
    bool computing = false;
    std::array<std::array<int, port_kinds>, purposes> active{};  // [purpose][port kind]
    std::size_t speed = 0;
  };
  struct LinkState {
    LinkIndex link = 0;
    double bytes_per_s = 0;
    double factor = 1;
    std::vector<std::pair<std::uint32_t, PortKind>> users;
  };
  void computes(std::uint32_t rank, bool on);
  void communicates(std::uint32_t rank, workloads::Purpose purpose, const CallPrice& price, int change);
  void update(std::uint32_t rank);
  [[nodiscard]] std::size_t speed_of(const RankState& state) const;
  [[nodiscard]] double beta_of(const RankState& state, PortKind kind) const;

  bool neutral_ = true;  // all coefficients are 1: nothing ever changes
  std::array<ContentionPair, purposes> pairs_;
  std::vector<RankState> ranks_;
  std::vector<LinkState> links_;
  std::vector<std::vector<std::size_t>> links_of_rank_;
  const std::vector<HostIndex>& hosts_;
  Machine& machine_;
};

}  // namespace rehearse::sim
