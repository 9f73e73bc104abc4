// The links that the flows of a step share: which of them a message takes, how wide they are, and whose they are.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "sim/system.hpp"
#include "topology/fabric.hpp"
#include "workloads/operators.hpp"

namespace rehearse::sim {

// host: the link to the host's memory, or that memory.
enum class PortKind : std::uint8_t { scale_up, nic, host };
inline constexpr std::size_t port_kinds = 3;

// One direction of a link, as a number: what it is, which direction, which of its kind.
using Wire = std::uint64_t;

class Wiring {
 public:
  // The cluster, with its slow parts.
  explicit Wiring(const System& system);

  // Appends the wires of a message, over NIC `rail` of both nodes (-1: the sender's own) when it leaves the domain. Uplinks that the NICs
  // below them can never fill are left out. flow: what ecmp hashes.
  void route(int from, int to, int rail, std::uint64_t flow, std::vector<Wire>& into) const;
  // A rank's own way to its scale-up fabric (within the node, or between the nodes of a supernode) and to the network's switches.
  void scale_up_port(int rank, bool out, bool between_nodes, std::vector<Wire>& into) const;
  void nic_port(int rank, bool out, std::vector<Wire>& into) const;
  // Of a message that leaves the domain, what lies between switches; of a sum on its way to `root` or back, when switches add up what
  // comes to them: the ways of one root are a tree, so that what meets once stays together.
  void trunks(int from, int to, int rail, std::uint64_t flow, std::vector<Wire>& into) const;
  void tree_to(int root, int from, int rail, std::uint64_t flow, std::vector<Wire>& into) const;
  void tree_from(int root, int to, int rail, std::uint64_t flow, std::vector<Wire>& into) const;
  void host_copy(int rank, workloads::GroupKind kind, std::vector<Wire>& into) const;

  [[nodiscard]] int rail_of(int rank) const { return rank % cluster_.gpus_per_node * cluster_.rails_per_node() / cluster_.gpus_per_node; }
  [[nodiscard]] int domain_gpus() const { return cluster_.domain_gpus(); }
  [[nodiscard]] bool same_domain(int a, int b) const { return a / cluster_.domain_gpus() == b / cluster_.domain_gpus(); }
  // Whether members of one domain sit on several nodes of it.
  [[nodiscard]] bool between_nodes(std::span<const int> members) const;
  [[nodiscard]] double bytes_per_s(Wire wire) const;
  // Whose computation slows it (contention): nobody's for what lies between switches.
  [[nodiscard]] std::optional<PortKind> port_kind(Wire wire) const;
  [[nodiscard]] std::vector<int> users(Wire wire) const;
  // What kind of wire it is, in which direction: equal for wires that could stand for one another.
  [[nodiscard]] static std::uint64_t sort_of(Wire wire);
  [[nodiscard]] static std::string_view name_of(Wire wire);  // of its kind, in the plural: "NICs"
  // The rank that alone is behind it, or -1; and the same wire of another rank.
  [[nodiscard]] int owner(Wire wire) const;
  [[nodiscard]] Wire of_owner(Wire wire, int rank) const;
  // Whether every port belongs to one rank: a NIC for each GPU, and no links from GPU to GPU.
  [[nodiscard]] bool private_ports() const { return own_nics_ && !cluster_is_mesh_; }
  // Whether every message has cables of its own route, instead of its share of all uplinks.
  [[nodiscard]] bool routes_one_by_one() const { return fabric_ != nullptr; }
  [[nodiscard]] bool has_trunks() const { return fabric_ != nullptr || leaf_bytes_per_s_ > 0 || pod_bytes_per_s_ > 0; }

 private:
  [[nodiscard]] int node_of(int rank) const { return rank / cluster_.gpus_per_node; }
  [[nodiscard]] int leaf_of(int node, int rail) const;
  void slow_nics(const SlowParts& slow);
  void plan_trees(const SlowParts& slow);
  void plan_fabric(const SlowParts& slow);

  topology::ClusterSpec cluster_;
  int gpus_;
  bool shares_port_, own_nics_, cluster_is_mesh_;
  std::vector<double> slow_nic_;                       // [node * rails + rail] how many times as long; empty: once
  double leaf_bytes_per_s_ = 0, pod_bytes_per_s_ = 0;  // joint capacity of all uplinks; 0: never full
  double slow_trunks_ = 1;
  std::unique_ptr<topology::Fabric> fabric_;  // where trunks are routed one by one
};

}  // namespace rehearse::sim
