#include "sim/engine/cut.hpp"

#include <algorithm>

namespace rehearse::sim {
namespace {

using workloads::Phase;
using workloads::Workload;

// What communication is for that can be under way while a rank works on a unit without being a part of it.
std::vector<Phase> beside(const Workload& workload, const workloads::ReplicaSync& sync) {
  std::vector<Phase> classes;
  if (workload.parallel.pp > 1) classes.push_back(Phase::pp);
  if (sync.replicated() && (sync.overlap_gradients || sync.overlap_parameters)) classes.push_back(Phase::dp);
  if (workload.offload_activations) classes.push_back(Phase::offload);
  if (workload.overlap.ep) classes.insert(classes.end(), {Phase::ep, Phase::tp, Phase::cp});
  return classes;
}

bool slows_nothing(const ContentionPair& pair) { return pair.alpha == 1 && pair.beta == 1; }

// Whether the collectives within a unit are timed activities without links (CommPlanner::plan).
bool timed(const System& system, const workloads::Workload& workload) {
  if (system.simulation.collectives == Fidelity::closed) return true;
  const workloads::Parallel& parallel = workload.parallel;
  const bool tensor_only = parallel.cp == 1 || parallel.cp_comm == workloads::ContextComm::ring;
  return system.simulation.collectives == Fidelity::automatic && tensor_only;
}

}  // namespace

workloads::Cut cut_of(const System& system, const workloads::Workload& workload, const workloads::ReplicaSync& sync,
                      const workloads::Folding& folding) {
  const StepFaults& faults = system.simulation.faults;
  const std::vector<Phase> classes = beside(workload, sync);
  const bool alone = classes.empty() && folding.ranks.size() == 1;  // one class: all ranks do the same at the same time
  const bool unseen = faults.slow.none() && faults.failures.empty() && (timed(system, workload) || alone) &&
                      std::ranges::all_of(classes, [&](Phase beside) { return slows_nothing(system.gpu.contention_with(beside)); });
  return {system.simulation.granularity, unseen};
}

}  // namespace rehearse::sim
