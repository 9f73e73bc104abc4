#include "workloads/serving/instance_plan.hpp"

namespace rehearse::workloads {

Workload workload_of(const InstancePlan& plan, int tokens, const KernelFusions& fusions) {
  Workload workload;
  workload.model = plan.model;
  workload.model.dropout = 0;
  Parallel& parallel = workload.parallel;
  parallel.tp = plan.tp;
  parallel.pp = plan.pp;
  parallel.dp = plan.dp;
  parallel.ep = plan.ep;
  parallel.etp = plan.stage_ranks() / plan.ep;
  workload.batch = {.global = tokens, .micro = tokens, .sequence = 1};
  workload.precision.compute = plan.precision.compute;
  workload.precision.weights = plan.precision.weights;
  workload.experts.dispatcher = plan.dispatcher == Dispatcher::alltoall ? Dispatcher::allgather : plan.dispatcher;
  workload.fusions = fusions;
  return workload;
}

}  // namespace rehearse::workloads
