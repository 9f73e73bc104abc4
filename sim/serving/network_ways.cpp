// Over which links a cache goes from GPU to GPU, and over which others while links are gone.
#include <algorithm>
#include <stdexcept>

#include "sim/serving/network_transfers_impl.hpp"

namespace rehearse::sim {

bool NetworkTransfers::Impl::is_gone(const Links& links) const {
  return std::ranges::any_of(links, [&](const auto& link) { return std::ranges::binary_search(gone[link.first], link.second); });
}

// Over what is left; where nothing leads there, as if all were there: it waits.
topology::Route NetworkTransfers::Impl::route(std::size_t part, int from, int to) const {
  topology::Route out;
  if (part < left.size() && left[part]) {
    try {
      left[part]->route(from, to, 0, out);
      return out;
    } catch (const std::runtime_error&) {
      out = {};
    }
  }
  fabrics[part]->route(from, to, 0, out);
  return out;
}

// Another way only where its own is cut: the GPU at the other end of the route stands for any.
NetworkTransfers::Impl::Links NetworkTransfers::Impl::way_out(std::size_t part, int gpu, bool out, double& latency_s) const {
  Links own = way_out_in(*fabrics[part], part, gpu, out, latency_s);
  if (part >= left.size() || !left[part] || !is_gone(own)) return own;
  try {
    return way_out_in(*left[part], part, gpu, out, latency_s);
  } catch (const std::runtime_error&) {
    return own;
  }
}

// From a GPU to its part's switches, or back: up to the link behind its NIC.
NetworkTransfers::Impl::Links NetworkTransfers::Impl::way_out_in(const Fabric& fabric, std::size_t part, int gpu, bool out,
                                                                 double& latency_s) {
  const int domain = fabric.cluster().domain_gpus(), other = gpu < domain ? gpu + domain : gpu - domain;
  topology::Route route;
  out ? fabric.route(gpu, other, 0, route) : fabric.route(other, gpu, 0, route);
  latency_s = std::max(latency_s, route.latency_s);
  Links links;
  const auto is_nic = [&](LinkId link) { return fabric.links()[link].kind == topology::LinkKind::nic; };
  if (out) {
    for (const LinkId link : route.links) {
      links.emplace_back(part, link);
      if (is_nic(link)) break;
    }
  } else {
    const auto last = std::find_if(route.links.rbegin(), route.links.rend(), is_nic);
    for (auto link = std::prev(last.base()); link != route.links.end(); ++link) links.emplace_back(part, *link);
  }
  return links;
}

NetworkTransfers::Impl::Links NetworkTransfers::Impl::way(const TransferLane& lane, int from, int to, double& latency_s) const {
  Links links;
  if (lane.staged) links.emplace_back(lane.from_part, fabrics[lane.from_part]->device_to_host(from));
  const bool same_node = lane.one_part() && fabrics[lane.from_part]->node_of(from) == fabrics[lane.from_part]->node_of(to);
  if (lane.one_part() && !(lane.staged && same_node)) {
    const topology::Route over = route(lane.from_part, from, to);
    latency_s = std::max(latency_s, over.latency_s);
    for (const LinkId link : over.links) links.emplace_back(lane.from_part, link);
  } else if (!lane.one_part()) {
    for (const auto& link : way_out(lane.from_part, from, true, latency_s)) links.push_back(link);
    for (const auto& link : way_out(lane.to_part, to, false, latency_s)) links.push_back(link);
    latency_s = std::max(latency_s, job.between.of(lane.from_part, lane.to_part).latency_s);
  }
  if (lane.staged) links.emplace_back(lane.to_part, fabrics[lane.to_part]->host_to_device(to));
  return links;
}

// Each GPU reads from the one that has its place among those of the other instance.
std::vector<HandOver::Flow> NetworkTransfers::weights(std::size_t from, std::size_t to, double bytes_per_gpu) const {
  const auto [sender, source] = impl_->place_in(0, from);
  const auto [receiver, target] = impl_->place_in(0, to);
  const Pool &has = impl_->job.pools[sender], &wants = impl_->job.pools[receiver];
  const double line_share = std::min(has.habits.transfer_share, wants.habits.transfer_share);
  std::vector<HandOver::Flow> out;
  for (int gpu = 0; gpu < wants.plan.gpus(); ++gpu) {
    const int peer = gpu * has.plan.gpus() / wants.plan.gpus();
    HandOver::Flow& flow = out.emplace_back();
    flow.bytes = bytes_per_gpu / line_share;
    for (const topology::LinkId link :
         impl_->route(wants.part, impl_->places[sender][source] + peer, impl_->places[receiver][target] + gpu).links)
      flow.links.push_back(impl_->links[wants.part][link]);
  }
  return out;
}

}  // namespace rehearse::sim
