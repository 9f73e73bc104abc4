#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sim/job/rules/rule.hpp"

namespace rehearse::sim {
namespace {

using workloads::Workload;

bool computes(const Workload& w, const System& system) { return system.gpu.peak_flops_per_s.contains(w.precision.compute); }

Refusal other_precision(const Workload& w, const System& system) {
  std::vector<std::string_view> known;
  for (const auto& [type, peak] : system.gpu.peak_flops_per_s) known.push_back(workloads::name_of(type));
  return {fmt::format("GPU '{}' does not compute in {}", system.gpu.name, workloads::name_of(w.precision.compute)),
          fmt::format("it does in {}", fmt::join(known, ", "))};
}

// Refused at the part of it where there is one.
const Rule precision{"precision.compute", computes, other_precision, "precision"};

bool has_host_memory(const System& system) { return system.cluster.host_memory.bytes > 0; }

Refusal no_host_memory(const Workload&, const System& system) {
  return {fmt::format("cluster '{}' does not say how much memory the host of a node has", system.cluster.name),
          "add for example host_memory: {size: 2 TiB, bandwidth: 400 GB/s} to it"};
}

const Rule room_for_activations{"offload.activations",
                                [](const Workload& w, const System& system) { return !w.offload_activations || has_host_memory(system); },
                                no_host_memory};
const Rule room_for_states{"optimizer.device",
                           [](const Workload& w, const System& system) { return !w.optimizer.on_cpu || has_host_memory(system); },
                           no_host_memory};

const Rule host_updates{
    "optimizer.device",
    [](const Workload& w, const System& system) { return !w.optimizer.on_cpu || system.cluster.host_memory.bytes_per_s > 0; },
    [](const Workload&, const System& system) {
      return Refusal{fmt::format("cluster '{}' does not say how fast the host's memory is", system.cluster.name),
                     "add for example bandwidth: 400 GB/s to its host_memory"};
    }};

}  // namespace

std::vector<Rule> machine_rules() { return {precision, room_for_activations, room_for_states, host_updates}; }

}  // namespace rehearse::sim
