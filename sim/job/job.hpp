// A resolved job: every name replaced by what it names, every default filled in, every check passed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/node.hpp"
#include "sim/cost/gpu.hpp"
#include "sim/faults/step_faults.hpp"
#include "sim/job/whole_job.hpp"
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
  int steps = 1;
  std::uint64_t seed = 1;
  StepFaults faults;       // what goes wrong in the simulated step
  double timeout_s = 600;  // after that a communication that does not end is noticed: torch.distributed's default for NCCL
};

struct Job {
  std::string name;  // file name without folder and .yaml
  workloads::Workload workload;
  topology::ClusterSpec cluster;
  int gpus = 0;
  Gpu gpu;
  Software software;
  SimulationOptions simulation;
  WholeJob whole;
  // How many of the simulated steps differ: all where tokens are routed anew in each, otherwise one.
  [[nodiscard]] int distinct_steps() const;
  [[nodiscard]] Places places() const { return {gpus, cluster.gpus_per_node, cluster.rails_per_node()}; }
  config::Node resolved;  // the whole job with names replaced by inline content and all defaults; load_job() of its text gives the same job
};

struct JobRequest {
  std::string path;                                       // a job file; or a name in workloads/jobs
  std::vector<std::pair<std::string, std::string>> sets;  // --set key=value, in order
  std::optional<std::uint64_t> seed;                      // --seed
  std::vector<std::string> faults = {};                   // --fault: further items of simulation.faults
};

// Throws config::InputError with position. Never returns a job that cannot be predicted.
[[nodiscard]] Job load_job(const JobRequest& request);

// From a document already read (a measured case's `job`). Model names are also looked up in `models` when given (a map of name to model).
[[nodiscard]] Job read_job(config::Node node, const std::string& name, const config::Node& models = {});

// FNV-1a of the resolved job's text, as 16 hex digits: stands in every result.
[[nodiscard]] std::string input_hash(const Job& job);

}  // namespace rehearse::sim
