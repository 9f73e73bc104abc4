// The machines and how they are simulated. Knows no model, no plan and no price list beyond the device's and the software's own.
#pragma once

#include <cstdint>
#include <string>

#include "sim/cost/gpu.hpp"
#include "sim/faults/step_faults.hpp"
#include "sim/solver.hpp"
#include "topology/cluster.hpp"
#include "workloads/plan.hpp"

namespace rehearse::sim {

using workloads::Granularity;
enum class Fidelity { step, ring, closed, automatic };
// How flows between switches choose among paths of equal cost. balanced: they spread evenly, so that the uplinks of a leaf (or pod) are one
// link of their joint capacity. ecmp: each flow takes the path that its hash names, and several may meet on one; needs all ranks.
enum class Routing { balanced, ecmp };

struct SimulationOptions {
  Granularity granularity = Granularity::layer;
  Fidelity collectives = Fidelity::ring;
  Solver solver = Solver::automatic;
  bool all_ranks = false;  // ranks: all
  Routing routing = Routing::balanced;
  std::string algorithm = "auto";  // of all collectives: a registered name, or auto = the fastest per call of those that the software has
  topology::Protocol protocol = topology::Protocol::automatic;  // of NCCL's rings and trees, where the cluster says what it does
  int steps = 1;
  std::uint64_t seed = 1;
  StepFaults faults;       // what goes wrong in the simulated step
  double timeout_s = 600;  // after that a communication that does not end is noticed: torch.distributed's default for NCCL
};

struct System {
  topology::ClusterSpec cluster;
  int gpus = 0;  // in use, of the cluster's
  Gpu gpu;
  Software software;
  SimulationOptions simulation;

  [[nodiscard]] Places places() const { return {gpus, cluster.gpus_per_node, cluster.rails_per_node()}; }
};

}  // namespace rehearse::sim
