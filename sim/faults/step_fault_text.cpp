#include "sim/faults/step_fault_text.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "config/quantity.hpp"

namespace rehearse::sim {
namespace {

std::string time_text(double seconds) { return config::format_quantity(seconds, config::Dimension::time); }

// A GPU that uses this network port of the node.
int first_on_port(int node, int port, const Places& places) {
  int rank = node * places.gpus_per_node;
  while (places.rail_of(rank) != port) ++rank;
  return rank;
}

std::vector<int> units_of(const Fault& fault, const Places& places) {
  if (fault.unit != all_units) return {fault.unit};
  std::vector<int> all;
  for (int rail = 0; rail < places.rails; ++rail) all.push_back(rail);
  return all;
}

bool names_ports(const Fault& fault) {
  return fault.component == Component::nic || fault.component == Component::link || fault.component == Component::switch_;
}

bool names_one_gpu(const Fault& fault) {
  const bool gpu = fault.component == Component::gpu || fault.component == Component::hbm || fault.component == Component::software;
  return gpu || (fault.kind == FaultKind::fail && fault.level == FaultLevel::process);
}

std::vector<std::string> struck_in_node(const Fault& fault, int node, const Places& places) {
  std::vector<std::string> items;
  const auto add = [&](const char* what, int rank) {
    if (rank < places.gpus) items.push_back(fmt::format("{} {}", what, rank));
  };
  if (names_ports(fault)) {
    for (const int port : units_of(fault, places)) add("nic", first_on_port(node, port, places));
  } else if (names_one_gpu(fault)) {
    add("gpu", node * places.gpus_per_node + fault.unit);
  } else {
    items.push_back(fmt::format("node {}", node));
  }
  return items;
}

}  // namespace

std::vector<std::string> struck_by(const Fault& fault, const Places& places) {
  if (fault.kind == FaultKind::fail && fault.level == FaultLevel::job) return {"job"};
  if (fault.kind == FaultKind::slow && fault.component == Component::spine) return {"spine"};
  std::vector<std::string> items;
  if (fault.component == Component::switch_ && fault.nodes == 1) {
    for (const int rail : units_of(fault, places)) items.push_back(fmt::format("rail {}", rail));
    return items;
  }
  const int end = std::min(fault.node + fault.nodes, places.nodes());
  for (int node = fault.node; node < end; ++node) {
    const std::vector<std::string> more = struck_in_node(fault, node, places);
    items.insert(items.end(), more.begin(), more.end());
  }
  return items;
}

std::vector<std::string> items_within(const Fault& fault, double start_s, double for_s, const Places& places) {
  const double begins_s = to_s(fault.at) - start_s;
  std::vector<std::string> items = struck_by(fault, places);
  std::string how;
  if (fault.kind == FaultKind::fail) {
    if (begins_s < 0 || begins_s >= for_s) return {};
    how = " at " + time_text(begins_s);
  } else {
    const double ends_s = fault.duration == never ? for_s : begins_s + to_s(fault.duration);
    if (ends_s <= 0 || begins_s >= for_s) return {};
    how = fault.lost ? " lost" : fmt::format(" slow {}", fault.slowdown);
    const double from_s = std::max(0.0, begins_s);
    if (from_s > 0 || ends_s < for_s) how += fmt::format(" from {} for {}", time_text(from_s), time_text(std::min(ends_s, for_s) - from_s));
  }
  for (std::string& item : items) item += how;
  return items;
}

std::vector<std::string> items_of(const SlowParts& slow) {
  std::vector<std::string> items;
  for (const auto& [rank, slowdown] : slow.gpus) items.push_back(fmt::format("gpu {} slow {}", rank, slowdown));
  for (const auto& [rank, slowdown] : slow.ports) items.push_back(fmt::format("nic {} slow {}", rank, slowdown));
  if (slow.trunks > 1) items.push_back(fmt::format("spine slow {}", slow.trunks));
  for (int i = 0; i < slow.lost_spines; ++i) items.emplace_back("spine lost");
  return items;
}

}  // namespace rehearse::sim
