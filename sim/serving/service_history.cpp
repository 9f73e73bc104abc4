#include "sim/serving/service_history.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/faults/random.hpp"
#include "sim/serving/placement.hpp"
#include "sim/serving/service_links.hpp"

namespace rehearse::sim {
namespace {

constexpr std::uint64_t gpu_stream = 5;  // which GPU of a node a failing process has

int nodes_taken(const ServingJob& job, std::size_t part) {
  const int per_node = job.parts[part].cluster.gpus_per_node;
  return (gpus_taken(job, part) + per_node - 1) / per_node;
}

class Striking {
 public:
  Striking(const ServingJob& job, std::uint64_t seed) : job_(job), places_(places_of(job)), links_(job), random_(seed, gpu_stream) {}

  // Nothing where nobody stands there.
  std::optional<ServiceFault> struck_by(const Fault& fault) {
    ServiceFault out{.text = fault.label, .from_s = to_s(fault.at)};
    if (fault.kind == FaultKind::fail) {
      out.for_s = fault.recovery ? to_s(*fault.recovery) : job_.recovery_s;
    } else {
      out.kind = slowed_by(fault.component) == Slows::compute ? ServiceFault::Kind::slows : ServiceFault::Kind::link;
      out.for_s = fault.duration == never ? INFINITY : to_s(fault.duration);
      out.times = fault.slowdown;
      if (slowed_by(fault.component) == Slows::trunks) {
        if (job_.uses_network()) out.links = links_.trunks();
        return out.links.empty() ? std::nullopt : std::optional(std::move(out));
      }
    }
    for (int node = fault.node; node < fault.node + fault.nodes; ++node) strike(fault, node, out);
    std::ranges::sort(out.instances);
    out.instances.erase(std::unique(out.instances.begin(), out.instances.end()), out.instances.end());
    if (out.instances.empty() && out.links.empty()) return std::nullopt;
    return out;
  }

 private:
  void strike(const Fault& fault, int node, ServiceFault& out) {
    std::size_t part = 0;
    while (part < job_.parts.size() && node >= nodes_taken(job_, part)) node -= nodes_taken(job_, part++);
    if (part == job_.parts.size()) return;
    const int per_node = job_.parts[part].cluster.gpus_per_node, first = node * per_node;
    const bool one_gpu = fault.component == Component::gpu || fault.component == Component::hbm;
    if (out.kind == ServiceFault::Kind::link) {
      strike_ports(fault, part, first, out);
    } else if (fault.kind == FaultKind::fail && fault.level == FaultLevel::process) {
      const int gpu = first + (one_gpu ? std::clamp(fault.unit, 0, per_node - 1) : random_.below(per_node));
      strike_instances(part, gpu, gpu + 1, out);
    } else if (fault.kind == FaultKind::slow && one_gpu && fault.unit != all_units) {
      strike_instances(part, first + fault.unit, first + fault.unit + 1, out);
    } else {
      strike_instances(part, first, first + per_node, out);
    }
  }

  void strike_ports(const Fault& fault, std::size_t part, int first, ServiceFault& out) {
    const topology::ClusterSpec& cluster = job_.parts[part].cluster;
    if (!job_.uses_network() || cluster.network.kind == topology::Network::none) return;
    for (int gpu = 0; gpu < cluster.gpus_per_node; ++gpu) {
      const int rail = gpu * cluster.rails_per_node() / cluster.gpus_per_node;
      if (fault.unit != all_units && rail != fault.unit) continue;
      for (const ServiceLink& link : links_.port(part, first + gpu)) {
        if (std::ranges::count(out.links, link) == 0) out.links.push_back(link);
      }
    }
  }

  void strike_instances(std::size_t part, int first, int end, ServiceFault& out) const {
    std::size_t index = 0;
    for (std::size_t pool = 0; pool < places_.size(); ++pool) {
      for (const int place : places_[pool]) {
        if (job_.pools[pool].part == part && place < end && place + job_.pools[pool].plan.gpus() > first) out.instances.push_back(index);
        ++index;
      }
    }
  }

  const ServingJob& job_;
  std::vector<std::vector<int>> places_;
  ServiceLinks links_;
  Random random_;
};

}  // namespace

FaultContext service_fault_context(const ServingJob& job) {
  FaultContext context{.nodes = 0, .rails = 1, .gpus_per_node = 0};
  for (std::size_t part = 0; part < job.parts.size(); ++part) {
    const topology::ClusterSpec& cluster = job.parts[part].cluster;
    context.nodes += nodes_taken(job, part);
    context.rails = std::max(context.rails, cluster.rails_per_node());
    context.gpus_per_node = std::max(context.gpus_per_node, cluster.gpus_per_node);
  }
  context.spines = ServiceLinks(job).spines().value_or(0);
  return context;
}

std::vector<ServiceFault> draw_service_faults(const ServingJob& job, std::uint64_t seed, double until_s) {
  std::vector<ServiceFault> out;
  Striking striking(job, seed);
  const std::unique_ptr<FaultStream> history = job.scenario->open(seed);
  for (auto fault = history->next(); fault && to_s(fault->at) < until_s; fault = history->next()) {
    if (auto struck = striking.struck_by(*fault)) out.push_back(std::move(*struck));
  }
  return out;
}

}  // namespace rehearse::sim
