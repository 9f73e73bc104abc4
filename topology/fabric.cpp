#include "topology/fabric.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "topology/fabric_impl.hpp"

namespace rehearse::topology {
namespace {

// Vertex and link numbers are 32 bits wide; a million GPUs is far beyond any machine and far below that.
constexpr int most_gpus = 1 << 20;

void require_room(const ClusterSpec& cluster, int gpus) {
  if (gpus < 1) throw config::InputError(fmt::format("a fabric needs at least 1 GPU, not {}", gpus));
  if (gpus > most_gpus) throw config::InputError(fmt::format("{} GPUs are more than the {} that can be simulated", gpus, most_gpus));
  const int most = cluster.max_gpus();
  if (most > 0 && gpus > most) {
    throw config::InputError(
        fmt::format("cluster '{}' has {} GPUs ({} nodes of {}), not {}", cluster.name, most, cluster.nodes, cluster.gpus_per_node, gpus));
  }
}

void require_gpu(const Layout& at, int gpu) {
  if (gpu < 0 || gpu >= at.gpus) throw std::out_of_range(fmt::format("gpu{} of {}", gpu, at.gpus));
}

// A dead vertex takes its links along. The PCIe link of a dead NIC stays: it is the GPU's way to the node's other NICs too.
void kill_links_of_dead_vertices(const Plan& plan, Mask& mask) {
  for (LinkId id = 0; id < plan.links.size(); ++id) {
    const auto& link = plan.links[id];
    const auto kills = [&](VertexId v) {
      return mask.vertex[v] != 0 && !(link.kind == LinkKind::pcie && plan.layout.kind(v) == VertexKind::nic);
    };
    if (kills(link.from) || kills(link.to)) mask.link[id] = 1;
  }
}

}  // namespace

Fabric::Fabric(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Fabric::Fabric(Fabric&&) noexcept = default;
Fabric& Fabric::operator=(Fabric&&) noexcept = default;
Fabric::~Fabric() = default;

Fabric Fabric::build(const ClusterSpec& cluster, int gpus) {
  require_room(cluster, gpus);
  return Fabric(std::make_unique<Impl>(std::make_shared<const Plan>(cluster, gpus), Mask{}));
}

const ClusterSpec& Fabric::cluster() const { return impl_->plan->cluster; }
int Fabric::gpu_count() const { return impl_->plan->layout.gpus; }
int Fabric::node_of(int gpu) const { return impl_->plan->layout.node_of(gpu); }
int Fabric::supernode_of(int gpu) const { return impl_->plan->layout.domain_of(gpu); }
int Fabric::rail_of(int gpu) const { return impl_->plan->layout.rail_of(gpu); }
std::span<const Link> Fabric::links() const { return impl_->plan->links; }
std::size_t Fabric::vertex_count() const { return impl_->plan->layout.vertices; }
VertexKind Fabric::vertex_kind(VertexId vertex) const { return impl_->plan->layout.kind(vertex); }
std::string Fabric::vertex_name(VertexId vertex) const { return impl_->plan->name(vertex); }
int Fabric::level(VertexId vertex) const { return impl_->plan->level(vertex); }
VertexId Fabric::gpu_vertex(int gpu) const { return static_cast<VertexId>(gpu); }
LinkId Fabric::reverse(LinkId trunk) const { return impl_->plan->reverse_trunk(trunk); }
LinkId Fabric::device_to_host(int gpu) const { return impl_->plan->layout.host_link0 + 2 * static_cast<LinkId>(gpu); }
LinkId Fabric::host_to_device(int gpu) const { return device_to_host(gpu) + 1; }

Distance Fabric::distance(int a, int b) const {
  const auto& at = impl_->plan->layout;
  if (a == b) return Distance::self;
  if (at.node_of(a) == at.node_of(b) && cluster().intra_kind != IntraNode::none) return Distance::node;
  return at.domains > 0 && at.domain_of(a) == at.domain_of(b) ? Distance::supernode : Distance::network;
}

double Fabric::alpha_s(Distance distance) const {
  const auto& c = cluster();
  switch (distance) {
    case Distance::self:
      return 0;
    case Distance::node:
      return c.intra.latency_s;
    case Distance::supernode:
      return c.supernode_gpus > 0 ? c.supernode.latency_s : c.intra.latency_s;
    case Distance::network:
      return c.nic.latency_s;
  }
  return 0;
}

void Fabric::route(int from_gpu, int to_gpu, std::uint64_t flow_hash, Route& into, int rail) const {
  const auto& at = impl_->plan->layout;
  require_gpu(at, from_gpu);
  require_gpu(at, to_gpu);
  if (rail < -1 || rail >= std::max(1, at.rails)) throw std::out_of_range(fmt::format("rail {} of {}", rail, at.rails));
  into.links.clear();
  into.latency_s = 0;
  if (from_gpu == to_gpu) return;
  const int chosen = rail < 0 ? at.rail_of(from_gpu) : rail;
  const auto reached = impl_->router.route(from_gpu, to_gpu, distance(from_gpu, to_gpu), flow_hash, chosen, into.links);
  if (!reached) throw std::runtime_error(fmt::format("no path from gpu{} to gpu{}", from_gpu, to_gpu));
  into.latency_s = alpha_s(*reached);
}

Fabric Fabric::without(const Failures& failures) const {
  const auto& plan = *impl_->plan;
  Mask mask = impl_->mask;
  mask.vertex.resize(plan.layout.vertices, 0);
  mask.link.resize(plan.links.size(), 0);
  for (const VertexId vertex : failures.vertices) mask.vertex.at(vertex) = 1;
  for (const LinkId link : failures.links) mask.link.at(link) = 1;
  kill_links_of_dead_vertices(plan, mask);
  return Fabric(std::make_unique<Impl>(impl_->plan, std::move(mask)));
}

}  // namespace rehearse::topology
