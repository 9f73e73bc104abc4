#include "sim/serving/service_links.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/serving/network_transfers.hpp"
#include "sim/serving/placement.hpp"

namespace rehearse::sim {
namespace {

using topology::Fabric;
using topology::Link;
using topology::LinkKind;

void add_links(std::size_t part, const Fabric& fabric, ServiceLinks::Links& out, const auto& chosen) {
  const auto links = fabric.links();
  for (std::size_t i = 0; i < links.size(); ++i) {
    if (chosen(links[i])) out.push_back({part, static_cast<std::uint32_t>(i)});
  }
}

}  // namespace

const Fabric& ServiceLinks::fabric(std::size_t part) {
  if (!fabrics_[part]) fabrics_[part] = fabric_for(job_.parts[part].cluster, gpus_taken(job_, part));
  return *fabrics_[part];
}

const std::map<ServiceLinks::Port, ServiceLinks::Links>& ServiceLinks::ports(std::size_t part) {
  std::map<Port, Links>& out = ports_[part];
  if (!out.empty()) return out;
  const Fabric& all = fabric(part);
  std::map<std::string, Port> named;
  for (int gpu = 0; gpu < all.gpu_count(); ++gpu) {
    const Port port{all.node_of(gpu), all.rail_of(gpu)};
    named[fmt::format("node{}/nic{}", port.node, port.rail)] = port;
  }
  for (std::size_t i = 0; i < all.links().size(); ++i) {
    const Link& link = all.links()[i];
    if (link.kind != LinkKind::nic) continue;
    for (const topology::VertexId end : {link.from, link.to}) {
      if (const auto found = named.find(all.vertex_name(end)); found != named.end())
        out[found->second].push_back({part, static_cast<std::uint32_t>(i)});
    }
  }
  return out;
}

ServiceLinks::Links ServiceLinks::port(std::size_t part, int gpu) {
  const Fabric& all = fabric(part);
  if (gpu >= all.gpu_count() || all.cluster().network.kind == topology::Network::none) return {};
  const auto found = ports(part).find({all.node_of(gpu), all.rail_of(gpu)});
  return found == ports(part).end() ? Links{} : found->second;
}

ServiceLinks::Links ServiceLinks::rail(int rail) {
  Links out;
  for (std::size_t part = 0; part < job_.parts.size(); ++part) {
    if (job_.parts[part].cluster.network.kind == topology::Network::none) continue;
    for (const auto& [port, links] : ports(part)) {
      if (port.rail == rail) out.insert(out.end(), links.begin(), links.end());
    }
  }
  return out;
}

ServiceLinks::Links ServiceLinks::trunks() {
  Links out;
  for (std::size_t part = 0; part < job_.parts.size(); ++part)
    add_links(part, fabric(part), out, [](const Link& link) { return link.kind == LinkKind::trunk; });
  return out;
}

std::optional<int> ServiceLinks::spines() const {
  std::optional<int> out;
  for (const ClusterPart& part : job_.parts) {
    const topology::NetworkSpec& network = part.cluster.network;
    if (network.kind == topology::Network::none || network.kind == topology::Network::single_switch) continue;
    if (network.spines < 1 || (out && *out != network.spines)) return std::nullopt;
    out = network.spines;
  }
  return out;
}

std::optional<std::size_t> ServiceLinks::part_named(const std::string& name) const {
  const auto found = std::ranges::find(job_.parts, name, &ClusterPart::name);
  if (name.empty() || found == job_.parts.end()) return std::nullopt;
  return static_cast<std::size_t>(found - job_.parts.begin());
}

ServiceLinks::Links ServiceLinks::named(const std::string& from, const std::string& to) {
  if (const auto one = part_named(from), other = part_named(to); one && other && *one != *other)
    return {between_parts(job_.parts.size(), *one, *other), between_parts(job_.parts.size(), *other, *one)};
  Links out;
  for (std::size_t part = 0; part < job_.parts.size(); ++part) {
    const std::string before = job_.parts[part].name.empty() ? "" : job_.parts[part].name + "/";
    if (!from.starts_with(before) || !to.starts_with(before)) continue;
    const Fabric& all = fabric(part);
    const std::string a = from.substr(before.size()), b = to.substr(before.size());
    add_links(part, all, out, [&](const Link& link) {
      const std::string start = all.vertex_name(link.from), end = all.vertex_name(link.to);
      return (start == a && end == b) || (start == b && end == a);
    });
  }
  return out;
}

}  // namespace rehearse::sim
