// Export to SimGrid's platform description, version 4.1: every GPU a host, every directed link a link, every route written out.
#include <fmt/format.h>
#include <fmt/ostream.h>

#include <algorithm>
#include <optional>
#include <ostream>
#include <stdexcept>

#include "config/input_error.hpp"
#include "topology/fabric_impl.hpp"

namespace rehearse::topology {
namespace {

constexpr int most_gpus_written = 512;  // a quarter of a million routes, some tens of megabytes

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '"') {
      out += "&quot;";
    } else {
      out += c;
    }
  }
  return out;
}

// Parallel trunks have the same ends: the number keeps the names apart.
std::string link_name(const Plan& plan, LinkId id) {
  return escaped(fmt::format("{}:{}-{}", id, plan.name(plan.links[id].from), plan.name(plan.links[id].to)));
}

// The alpha of a message lies in equal halves on the two links that every route of its kind has: the ports at both ends (a direct GPU to
// GPU link carries all of it). In a PCIe box routes to the network pass the GPU's port too, whose share is therefore taken off the NIC's.
double latency_share_s(const Fabric& fabric, const Plan& plan, LinkId id) {
  const auto& link = plan.links[id];
  const auto& at = plan.layout;
  const double through_port = at.pcie_box ? fabric.alpha_s(Distance::node) : 0;
  if (link.kind == LinkKind::nic) return std::max(0.0, fabric.alpha_s(Distance::network) - through_port) / 2;
  if (link.kind != LinkKind::scale_up) return 0;
  if (at.mesh && at.mesh0 <= id && at.kind(link.from) == at.kind(link.to)) return fabric.alpha_s(Distance::node);
  const VertexId there = at.kind(link.from) == VertexKind::gpu ? link.to : link.from;
  const bool domain = there >= at.domain_switch0 && (at.node_switch || at.mesh);
  return fabric.alpha_s(domain ? Distance::supernode : Distance::node) / 2;
}

std::optional<Route> find_route(const Fabric& fabric, int from, int to) {
  Route route;
  try {
    fabric.route(from, to, 0, route);
  } catch (const std::runtime_error&) {
    return std::nullopt;
  }
  return route;
}

void write_route(std::ostream& out, const Fabric& fabric, const Plan& plan, int from, int to) {
  const auto route = find_route(fabric, from, to);
  if (!route) return;
  fmt::print(out, "    <route src=\"gpu{}\" dst=\"gpu{}\" symmetrical=\"NO\">", from, to);
  for (const LinkId id : route->links) fmt::print(out, "<link_ctn id=\"{}\"/>", link_name(plan, id));
  fmt::print(out, "</route>\n");
}

}  // namespace

void Fabric::write_simgrid_xml(std::ostream& out) const {
  const auto& plan = *impl_->plan;
  const int gpus = gpu_count();
  if (gpus > most_gpus_written) {
    throw config::InputError(
        fmt::format("{} GPUs are too many for a SimGrid file, which lists every route: at most {}", gpus, most_gpus_written));
  }
  out << "<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n<platform version=\"4.1\">\n";
  fmt::print(out, "  <zone id=\"{}\" routing=\"Full\">\n", escaped(cluster().name));
  for (int gpu = 0; gpu < gpus; ++gpu) fmt::print(out, "    <host id=\"gpu{}\" speed=\"1f\"/>\n", gpu);
  for (LinkId id = 0; id < plan.links.size(); ++id) {
    fmt::print(out, "    <link id=\"{}\" bandwidth=\"{}Bps\" latency=\"{}s\"/>\n", link_name(plan, id),
               plan.links[id].bandwidth_bytes_per_s, latency_share_s(*this, plan, id));
  }
  for (int from = 0; from < gpus; ++from) {
    for (int to = 0; to < gpus; ++to) {
      if (to != from) write_route(out, *this, plan, from, to);
    }
  }
  out << "  </zone>\n</platform>\n";
}

}  // namespace rehearse::topology
