// What a job does when something fails. One policy, one .cpp with its registration.
#pragma once

#include "config/registry.hpp"
#include "sim/faults/fault.hpp"
#include "sim/job/whole_job.hpp"

namespace rehearse::sim {

struct Situation {
  FaultLevel level = FaultLevel::pod;
  int nodes = 0;       // that the failure took from the job; 0 unless at pod level
  bool enough = true;  // there are idle nodes for all that the job lacks
};

struct Response {
  enum class Nodes {
    keep,     // the job goes on with the nodes it has: none was lost, or those lost are left out
    replace,  // idle nodes take the places of those lost
    wait      // as replace, once there are enough
  };
  const DurationLaw* time = nullptr;  // until the job can load its checkpoint; counts from the detection, or from the end of the wait
  bool own_time_of_fault = true;      // a fault that brings its own recovery time overrides `time`
  Nodes nodes = Nodes::keep;
  bool without_lost = false;  // keep: the replicas that the lost nodes belong to are left out until they are repaired
  bool everything = false;    // all processes move: what the nodes' memory held is gone
};

class RecoveryPolicy {
 public:
  static constexpr std::string_view kind = "recovery policy";
  virtual ~RecoveryPolicy() = default;
  // Whether lost nodes are left out until they are repaired, so that the job has no spares unless it says how many.
  [[nodiscard]] virtual bool leaves_out() const { return false; }
  [[nodiscard]] virtual Response respond(const Situation& situation, const RecoverySpec& spec) const = 0;
};

using RecoveryPolicyRegistry = config::Registry<RecoveryPolicy>;

[[nodiscard]] inline const DurationLaw& time_of(FaultLevel level, const RecoverySpec& spec) {
  return spec.time[static_cast<std::size_t>(level)];
}

// The time to bring in or leave out nodes without starting pods: `swap`, or what restarting processes takes.
[[nodiscard]] inline const DurationLaw& swap_time(const RecoverySpec& spec) {
  return spec.swap ? *spec.swap : time_of(FaultLevel::process, spec);
}

// What every policy but `restart` does where no nodes are lost: processes start again in place, or all of the job does.
[[nodiscard]] inline Response in_place(const Situation& situation, const RecoverySpec& spec) {
  Response response;
  response.time = &time_of(situation.level, spec);
  response.everything = situation.level == FaultLevel::job;
  return response;
}

// Leaving out the replicas of the lost nodes.
[[nodiscard]] inline Response leave_out(const RecoverySpec& spec) {
  Response response;
  response.time = &swap_time(spec);
  response.own_time_of_fault = false;
  response.without_lost = true;
  return response;
}

// The answer of every policy that takes spares when there are not enough left.
[[nodiscard]] inline Response without_spares(const RecoverySpec& spec) {
  if (spec.shrink_when_empty) return leave_out(spec);
  Response response;
  response.time = &time_of(FaultLevel::pod, spec);
  response.nodes = Response::Nodes::wait;
  return response;
}

}  // namespace rehearse::sim
