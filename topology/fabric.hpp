// The cluster as a graph (Boost.Graph inside): GPUs, scale-up switches, NICs, network switches, hosts and storage; directed links; routes.
// Immutable once built; but routing tables are filled when first used, so one Fabric serves one thread. GPU ids are 0..gpu_count()-1 in
// placement order: node by node.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "topology/cluster.hpp"

namespace rehearse::topology {

using LinkId = std::uint32_t;
using VertexId = std::uint32_t;

enum class VertexKind : std::uint8_t { gpu, scale_up_switch, nic, network_switch, host, storage };
enum class LinkKind : std::uint8_t { scale_up, pcie, nic, trunk, host, storage };
// How far apart two GPUs are; decides the alpha of a message between them.
enum class Distance : std::uint8_t { self, node, supernode, network };

struct Link {
  VertexId from = 0, to = 0;
  double bandwidth_bytes_per_s = 0;  // effective: line rate x efficiency x parallel cables
  LinkKind kind = LinkKind::scale_up;
};

struct Route {
  std::vector<LinkId> links;  // in order from source to destination; the hop between GPU and NIC only where the cluster gives its rate
  double latency_s = 0;       // alpha of one message
};

// What to leave out of the fabric, by vertex or link (failures).
struct Failures {
  std::vector<VertexId> vertices;
  std::vector<LinkId> links;
};

struct CutReport {
  double bisection_bytes_per_s = 0;        // one direction, from the lower to the upper half of the nodes (max flow); 0 for one node
  double injection_bytes_per_s = 0;        // what the NICs of one half could inject
  std::vector<std::string> single_points;  // switches whose loss alone separates GPUs (articulation points), sorted by name
};

class Fabric {
 public:
  // The first `gpus` GPUs of the cluster. 16,384 GPUs: < 1 s and < 300 MB. Throws config::InputError when the cluster is too small.
  static Fabric build(const ClusterSpec& cluster, int gpus);
  Fabric(Fabric&&) noexcept;
  Fabric& operator=(Fabric&&) noexcept;
  ~Fabric();

  [[nodiscard]] const ClusterSpec& cluster() const;
  [[nodiscard]] int gpu_count() const;
  [[nodiscard]] int node_of(int gpu) const;
  [[nodiscard]] int supernode_of(int gpu) const;
  [[nodiscard]] int rail_of(int gpu) const;  // index of the network port in its node (ClusterSpec::rails_per_node)
  [[nodiscard]] Distance distance(int a, int b) const;
  [[nodiscard]] double alpha_s(Distance distance) const;

  [[nodiscard]] std::span<const Link> links() const;
  [[nodiscard]] std::size_t vertex_count() const;
  [[nodiscard]] VertexKind vertex_kind(VertexId vertex) const;
  [[nodiscard]] std::string vertex_name(VertexId vertex) const;  // "gpu12", "node1/nvswitch", "node1/nic3", "leaf4", "spine0"
  // Of a network switch: 1 where NICs hang on it, one more on each level of a tree above; 0 of all other vertices.
  [[nodiscard]] int level(VertexId vertex) const;
  [[nodiscard]] VertexId gpu_vertex(int gpu) const;

  // Shortest path; among equal ones ECMP by `flow_hash`. Inside a scale-up domain over its switch; otherwise over `rail` (default: the
  // source's own; both ends use port `rail` of their node, as NCCL's rings do). Throws std::runtime_error "no path from gpu3 to gpu9" when
  // cut off, std::out_of_range for a GPU or rail that does not exist.
  void route(int from_gpu, int to_gpu, std::uint64_t flow_hash, Route& into, int rail = -1) const;
  // The other direction of a link between switches.
  [[nodiscard]] LinkId reverse(LinkId trunk) const;
  // GPU to its host memory and back.
  [[nodiscard]] LinkId host_to_device(int gpu) const;
  [[nodiscard]] LinkId device_to_host(int gpu) const;

  // The same fabric without what failed; routes go over what is left.
  [[nodiscard]] Fabric without(const Failures& failures) const;

  [[nodiscard]] CutReport cuts() const;
  void write_dot(std::ostream& out) const;
  // As a subgraph for a graph of several, names behind "PART/"; the name of what stands for its top switches, "" where it has none.
  std::string write_dot_part(const std::string& part, std::ostream& out) const;
  void write_simgrid_xml(std::ostream& out) const;  // hosts, links and full routes; refuses more than 512 GPUs (routes grow quadratically)

 private:
  struct Impl;
  explicit Fabric(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace rehearse::topology
