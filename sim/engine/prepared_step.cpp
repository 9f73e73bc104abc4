#include "sim/engine/prepared_step.hpp"

#include "sim/communication_of.hpp"
#include "sim/engine/cut.hpp"

namespace rehearse::sim {
namespace {

// Slower trunks, or fewer of them, are a higher oversubscription.
topology::ClusterSpec with_slow_trunks(const Job& job) {
  topology::ClusterSpec cluster = job.system.cluster;
  cluster.network.oversubscription *= job.system.simulation.faults.slow.trunk_factor(cluster.network.spines);
  return cluster;
}

workloads::Compiled as_ranks_fold(const Job& job, const workloads::Compiled& plan, const workloads::Folding& ranks) {
  const workloads::Cut cut = cut_of(job.system, job.workload, plan.sync, ranks);
  return cut == plan.cut ? plan : workloads::compile(job.workload, cut);
}

}  // namespace

PreparedStep::PreparedStep(const Job& its_job, const workloads::Compiled& plan, int which)
    : job(its_job),
      step(which),
      model(communication_of(job.system, job.workload, with_slow_trunks(job))),
      fold(job.system.simulation.all_ranks ? unfolded(job.system, job.workload) : sim::fold(job.system, job.workload, plan, model)),
      compiled(as_ranks_fold(job, plan, fold.ranks)),
      graph(workloads::build_step(job.workload, compiled, fold.ranks, step)),
      prices(price_graph(job.system, job.workload, model, graph)) {}

workloads::Compiled compiled_for_simulation(const Job& job) { return workloads::compile(job.workload, job.system.simulation.granularity); }

CompiledJob::CompiledJob(const Job& job)
    : for_simulation(std::make_shared<const workloads::Compiled>(compiled_for_simulation(job))), into_layers(for_simulation) {
  if (for_simulation->cut != workloads::Cut(workloads::Granularity::layer))
    into_layers = std::make_shared<const workloads::Compiled>(workloads::compile(job.workload));
}

}  // namespace rehearse::sim
