// Finds routes. Distances to the destination's switch are computed when first asked for and kept: not for use from several threads at once.
#pragma once

#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <memory>
#include <optional>
#include <vector>

#include "topology/plan.hpp"

namespace rehearse::topology {

class Router {
 public:
  Router(const Plan& plan, const Mask& mask) : plan_(plan), mask_(mask), towards_(num_vertices(plan.switches)) {}

  // Appends the links of the route and returns how far it went; nothing when there is no path.
  std::optional<Distance> route(int from, int to, Distance distance, std::uint64_t flow_hash, int rail, std::vector<LinkId>& into);

 private:
  using Distances = std::vector<std::uint16_t>;
  using TrafficGraph = boost::compressed_sparse_row_graph<boost::bidirectionalS, boost::no_property, LinkId, boost::no_property,
                                                          std::uint32_t, std::uint32_t>;

  bool over_mesh(int from, int to, std::vector<LinkId>& into) const;
  bool over_switch(LinkId ports, int from, int to, std::vector<LinkId>& into) const;
  bool over_any_rail(int from, int to, std::uint64_t flow_hash, int rail, std::vector<LinkId>& into);
  bool over_rail(int from, int to, std::uint64_t flow_hash, int rail, std::vector<LinkId>& into);
  bool between_switches(std::uint32_t from, std::uint32_t to, std::uint64_t flow_hash, std::vector<LinkId>& into);
  const Distances& distances_to(std::uint32_t destination);
  [[nodiscard]] Distances measure_switches(std::uint32_t destination) const;
  std::optional<Distance> detour(int from, int to, std::uint64_t flow_hash, std::vector<LinkId>& into);
  void measure_detour(VertexId destination);
  [[nodiscard]] Distance reach(const std::vector<LinkId>& links) const;

  const Plan& plan_;
  const Mask& mask_;
  std::vector<Distances> towards_;  // by destination switch; empty: not computed yet
  std::vector<std::uint32_t> candidates_;
  std::vector<std::pair<VertexId, LinkId>> steps_;
  std::unique_ptr<TrafficGraph> traffic_;
  VertexId detour_to_ = ~VertexId{0};
  std::vector<std::uint32_t> detour_distances_;
};

}  // namespace rehearse::topology
