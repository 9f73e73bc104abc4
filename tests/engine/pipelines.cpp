#include "pipelines.hpp"

#include "sim/engine/child_process.hpp"

namespace rehearse::tests {

workloads::Workload pipeline(const std::string& schedule, int stages, int chunks, int microbatches) {
  workloads::Workload w;
  w.model.layers = stages * chunks;
  w.model.hidden = 64;
  w.model.heads = w.model.kv_heads = 4;
  w.model.head_dim = 16;
  w.model.ffn = 256;
  w.parallel.pp = stages;
  w.parallel.vpp = chunks;
  w.batch = {microbatches, 1, 32};
  w.schedule = schedule;
  return w;
}

PricedPipeline priced(const workloads::Workload& workload, const ChunkSeconds& chunk_s, double hop_s) {
  PricedPipeline p{workload, workloads::folded_by_stage(workload), {}, {}};
  // The graph shares one work between equal layers; each stage needs its own here.
  workloads::StepGraph graph = workloads::build_step(workload, workloads::compile(workload, workloads::Granularity::stage), p.folding);
  for (workloads::OpId id = 0; id < graph.size(); ++id) {
    const workloads::Op op = graph.op(id);
    if (op.kind != workloads::OpKind::compute) continue;
    const std::string& label = graph.labels[op.label];
    const bool forward = label.rfind("F ", 0) == 0;
    const bool backward = label.rfind("B ", 0) == 0;
    graph.set_work(id, static_cast<std::uint32_t>(p.prices.work_s.size()));
    p.prices.work_s.push_back(forward || backward ? chunk_s(graph.ranks[op.rank].stage, forward) : 0);
  }
  sim::CallPrice hop;
  hop.kind = sim::CallKind::send;
  hop.alpha_s = hop_s;
  p.prices.calls.assign(graph.calls.size(), hop);
  p.graph = std::move(graph);
  return p;
}

double longest_path_s(const PricedPipeline& pipeline) { return sim::longest_path(pipeline.graph, pipeline.prices).step_s; }

sim::Execution on_simgrid(const PricedPipeline& pipeline, const std::vector<sim::RankFailure>& failures) {
  sim::Job job;
  job.workload = pipeline.workload;
  job.system.gpus = pipeline.workload.gpus();
  job.system.cluster.gpus_per_node = 1;
  job.system.cluster.nics_per_node = 1;
  job.system.cluster.nic.bandwidth_bytes_per_s = 1;  // messages here are pure delays: nothing flows
  const sim::CommunicationModel model(job.system.cluster, job.workload, "auto");
  sim::Machine machine;
  std::vector<sim::HostIndex> hosts;
  for (std::size_t i = 0; i < pipeline.graph.ranks.size(); ++i) hosts.push_back(machine.add_host(sim::contention_speeds(job.system.gpu)));
  sim::CommPlanner planner(job.system, workloads::rank_grid(job.workload), model, pipeline.graph, pipeline.folding, pipeline.prices,
                           machine, hosts);
  const sim::CommPlans plans = planner.plans();
  machine.seal();
  return sim::execute({job.system, pipeline.graph, pipeline.prices, plans, planner.port_links(), hosts, failures}, machine, {}).front();
}

double on_simgrid_in_child_s(const PricedPipeline& pipeline) {
  return sim::run_in_child([&] { return std::vector<double>{on_simgrid(pipeline).step_s}; }).front();
}

}  // namespace rehearse::tests
