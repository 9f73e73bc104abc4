// One thing that goes wrong, and the words by which files call it.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "config/names.hpp"
#include "sim/faults/nanoseconds.hpp"

namespace rehearse::sim {

enum class Component { any, gpu, hbm, nic, link, switch_, spine, rack, host, software };
enum class FaultKind { fail, slow };
// What a failure takes with it: processes, which start again on the same nodes; nodes, which must be replaced; the whole job.
enum class FaultLevel { process, pod, job };
inline constexpr std::size_t level_count = 3;
inline constexpr int all_units = -1;

struct Fault {
  Ns at = 0;          // since the start of the job
  std::string label;  // of the source, as the job calls it
  Component component = Component::any;
  FaultKind kind = FaultKind::fail;
  FaultLevel level = FaultLevel::pod;
  int node = 0;                // of the job
  int nodes = 1;               // that many, from `node` on
  int unit = 0;                // which GPU (gpu, hbm) or network port (nic, link, switch) of the node; all_units: every one
  std::optional<Ns> recovery;  // fail: instead of the policy's time
  Ns duration = never;         // slow: how long it lasts
  double slowdown = 1;         // slow: how many times as long the component takes
  bool lost = false;           // slow spine: it is gone, and the others carry its traffic
};

inline const config::Names<Component> components{
    {"any", Component::any},   {"gpu", Component::gpu},          {"hbm", Component::hbm},     {"nic", Component::nic},
    {"link", Component::link}, {"switch", Component::switch_},   {"spine", Component::spine}, {"rack", Component::rack},
    {"host", Component::host}, {"software", Component::software}};
inline const config::Names<FaultKind> fault_kinds{{"fail", FaultKind::fail}, {"slow", FaultKind::slow}};
inline const config::Names<FaultLevel> fault_levels{{"process", FaultLevel::process}, {"pod", FaultLevel::pod}, {"job", FaultLevel::job}};

// What a slow component slows: the computation of its node, its network ports, or everything between the leaf switches.
enum class Slows { compute, ports, trunks, nothing };
[[nodiscard]] Slows slowed_by(Component component);

}  // namespace rehearse::sim
