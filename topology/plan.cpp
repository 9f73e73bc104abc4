#include "topology/plan.hpp"

#include <fmt/format.h>

#include <limits>
#include <utility>

#include "topology/network_plan.hpp"

namespace rehearse::topology {
namespace {

// Appends links in the order the layout's bases expect.
class Builder {
 public:
  Builder(Plan& plan, const NetworkPlan& network) : plan_(plan), at_(plan.layout), network_(network) {
    plan.links.reserve(static_cast<std::size_t>(at_.gpus) * 10 + network.trunks.size() * 2 + static_cast<std::size_t>(at_.nodes) * 4);
  }

  void build() {
    if (at_.mesh) add_mesh();
    if (at_.node_switch) at_.node0 = add_ports(at_.node_switch0, at_.gpus_per_node, plan_.cluster.intra, LinkKind::scale_up);
    if (at_.domains > 0) at_.domain0 = add_ports(at_.domain_switch0, at_.domain_gpus, plan_.cluster.supernode, LinkKind::scale_up);
    if (at_.rails > 0) add_network();
    add_hosts();
    add_storage();
  }

 private:
  void pair(VertexId a, VertexId b, double forth, double back, LinkKind kind) {
    plan_.links.push_back({a, b, forth, kind});
    plan_.links.push_back({b, a, back, kind});
  }
  [[nodiscard]] LinkId next() const { return static_cast<LinkId>(plan_.links.size()); }

  void add_mesh() {
    at_.mesh0 = next();
    const double rate = plan_.cluster.intra.effective_bytes_per_s();
    for (int from = 0; from < at_.gpus; ++from) {
      const int first = at_.node_of(from) * at_.gpus_per_node;
      for (int to = first; to < first + at_.gpus_in(at_.node_of(from)); ++to) {
        if (to != from) plan_.links.push_back({static_cast<VertexId>(from), static_cast<VertexId>(to), rate, LinkKind::scale_up});
      }
    }
  }

  LinkId add_ports(VertexId first_switch, int gpus_per_switch, const LinkSpec& spec, LinkKind kind) {
    const LinkId base = next();
    const double rate = spec.effective_bytes_per_s();
    for (int gpu = 0; gpu < at_.gpus; ++gpu) {
      pair(static_cast<VertexId>(gpu), first_switch + static_cast<VertexId>(gpu / gpus_per_switch), rate, rate, kind);
    }
    return base;
  }

  void add_network() {
    const auto& cluster = plan_.cluster;
    if (const double to_nic = cluster.to_nic_bytes_per_s(); to_nic > 0) {
      at_.pcie0 = next();
      for (int gpu = 0; gpu < at_.gpus; ++gpu) {
        const VertexId nic = at_.nic(at_.node_of(gpu), at_.rail_of(gpu));
        pair(static_cast<VertexId>(gpu), nic, to_nic, to_nic, LinkKind::pcie);
      }
    }
    at_.rail0 = next();
    const double rate = cluster.rail_bytes_per_s();
    for (std::uint32_t port = 0; port < network_.attach.size(); ++port) {
      pair(at_.nic0 + port, at_.switch0 + network_.attach[port], rate, rate, LinkKind::nic);
    }
    at_.trunk0 = next();
    for (const auto& t : network_.trunks) {
      pair(at_.switch0 + t.a, at_.switch0 + t.b, t.bandwidth_bytes_per_s, t.bandwidth_bytes_per_s, LinkKind::trunk);
    }
  }

  // In a PCIe box the GPU's own port leads to the host too; the root complex behind the switch serves all of them at once.
  void add_hosts() {
    const double rate = plan_.cluster.host.effective_bytes_per_s();
    at_.host_link0 = at_.pcie_box ? at_.node0 : next();
    for (int gpu = 0; gpu < at_.gpus && !at_.pcie_box; ++gpu) {
      pair(static_cast<VertexId>(gpu), at_.host0 + static_cast<VertexId>(at_.node_of(gpu)), rate, rate, LinkKind::host);
    }
    for (int node = 0; node < at_.nodes && at_.pcie_box; ++node) {
      const auto n = static_cast<VertexId>(node);
      pair(at_.node_switch0 + n, at_.host0 + n, rate * at_.gpus_per_node, rate * at_.gpus_per_node, LinkKind::host);
    }
  }

  // Shared storage: a gateway every host reaches, and behind it one link that carries the whole cluster's traffic.
  void add_storage() {
    const auto& s = plan_.cluster.storage;
    const auto nodes = static_cast<VertexId>(at_.nodes);
    const bool shared = at_.vertices > at_.shared0;
    for (VertexId n = 0; n < at_.shared0 - at_.disk0; ++n) {
      pair(at_.host0 + n, at_.disk0 + n, s.disk_write_bytes_per_s, s.disk_read_bytes_per_s, LinkKind::storage);
    }
    for (VertexId n = 0; shared && n < nodes; ++n) {
      pair(at_.host0 + n, at_.shared0, s.shared_write_bytes_per_s, s.shared_read_bytes_per_s, LinkKind::storage);
    }
    if (shared) pair(at_.shared0, at_.shared0 + 1, s.shared_write_bytes_per_s, s.shared_read_bytes_per_s, LinkKind::storage);
  }

  Plan& plan_;
  Layout& at_;
  const NetworkPlan& network_;
};

SwitchMesh switch_mesh(const NetworkPlan& network, LinkId trunk0) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> ends;
  std::vector<Hop> hops;
  ends.reserve(network.trunks.size() * 2);
  hops.reserve(network.trunks.size() * 2);
  for (const auto& t : network.trunks) {
    const auto link = trunk0 + static_cast<LinkId>(hops.size());
    ends.insert(ends.end(), {{t.a, t.b}, {t.b, t.a}});
    hops.insert(hops.end(), {{link, t.order, t.weight}, {link + 1, t.order, t.weight}});
  }
  return {boost::edges_are_unsorted_multi_pass, ends.begin(), ends.end(), hops.begin(), network.switch_count()};
}

std::string switch_name(const std::vector<SwitchTier>& tiers, std::uint32_t index) {
  for (const auto& tier : tiers) {
    if (index < tier.count) return tier.numbered ? fmt::format("{}{}", tier.name, index) : tier.name;
    index -= tier.count;
  }
  return "";
}

// The hop from a GPU (or PCIe switch) to the NIC where no link stands for it, both ways.
void add_free_hops(const Plan& plan, const Mask& mask, std::vector<Edge>& edges) {
  const auto& at = plan.layout;
  const auto add = [&](VertexId a, VertexId b) {
    if (mask.alive_vertex(a) && mask.alive_vertex(b)) edges.insert(edges.end(), {{a, b, no_link}, {b, a, no_link}});
  };
  if (at.pcie_box) {
    for (VertexId nic = at.nic0; nic < at.switch0; ++nic) add(at.node_switch0 + (nic - at.nic0) / static_cast<VertexId>(at.rails), nic);
  } else if (at.rails > 0 && at.pcie0 == no_link) {
    for (int gpu = 0; gpu < at.gpus; ++gpu) add(static_cast<VertexId>(gpu), at.nic(at.node_of(gpu), at.rail_of(gpu)));
  }
}

}  // namespace

Plan::Plan(const ClusterSpec& cluster_spec, int gpu_count) : cluster(cluster_spec), layout(cluster_spec, gpu_count) {
  NetworkPlan network = plan_network(cluster, layout.nodes);
  const auto& s = cluster.storage;
  layout.number_vertices(network.switch_count(), s.disk_read_bytes_per_s > 0, s.shared_read_bytes_per_s > 0);
  Builder(*this, network).build();
  switches = switch_mesh(network, layout.trunk0);
  tiers = std::move(network.tiers);
  attach = std::move(network.attach);
}

std::string Plan::name(VertexId v) const {
  const auto& at = layout;
  const auto rails = static_cast<VertexId>(at.rails);
  if (v < at.node_switch0) return fmt::format("gpu{}", v);
  if (v < at.domain_switch0) return fmt::format("node{}/{}", v - at.node_switch0, at.pcie_box ? "pcie" : "nvswitch");
  if (v < at.nic0) return fmt::format("supernode{}/nvswitch", v - at.domain_switch0);
  if (v < at.switch0) return fmt::format("node{}/nic{}", (v - at.nic0) / rails, (v - at.nic0) % rails);
  if (v < at.host0) return switch_name(tiers, v - at.switch0);
  if (v < at.disk0) return fmt::format("node{}/host", v - at.host0);
  if (v < at.shared0) return fmt::format("node{}/disk", v - at.disk0);
  return v == at.shared0 ? "storage/gateway" : "storage";
}

int Plan::level(VertexId v) const {
  if (layout.kind(v) != VertexKind::network_switch) return 0;
  VertexId first = layout.switch0;
  for (const auto& tier : tiers) {
    if (v < first + tier.count) return tier.level;
    first += tier.count;
  }
  return 0;
}

std::vector<Edge> traffic_edges(const Plan& plan, const Mask& mask) {
  std::vector<Edge> edges;
  edges.reserve(plan.links.size());
  for (LinkId id = 0; id < plan.links.size(); ++id) {
    const auto& link = plan.links[id];
    const bool carries = link.kind != LinkKind::host && link.kind != LinkKind::storage;
    if (carries && mask.alive(id) && mask.alive_vertex(link.from) && mask.alive_vertex(link.to)) edges.push_back({link.from, link.to, id});
  }
  add_free_hops(plan, mask, edges);
  return edges;
}

}  // namespace rehearse::topology
