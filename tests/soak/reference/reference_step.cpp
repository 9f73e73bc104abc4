#include "reference_step.hpp"

#include "config/random.hpp"
#include "reference_run.hpp"
#include "sim/communication_of.hpp"
#include "sim/engine/executor.hpp"
#include "sim/engine/folding.hpp"
#include "sim/engine/prepared_step.hpp"
#include "workloads/step_builder.hpp"

namespace rehearse::tests {
namespace {

// Slower trunks are a higher oversubscription (docs/fault-format.md).
topology::ClusterSpec cluster_of(const sim::Job& job) {
  topology::ClusterSpec cluster = job.system.cluster;
  cluster.network.oversubscription *= job.system.simulation.faults.slow.trunk_factor(cluster.network.spines);
  return cluster;
}

// [link] bytes per second: one flow after another, alone on one link.
std::vector<double> measured_rates(sim::Machine& machine, const sim::CommPlans& plans, sim::HostIndex host) {
  sim::LinkIndex links = 0;
  for (const sim::CommPlan& plan : plans) {
    for (const sim::LinkIndex link : plan.links) links = std::max(links, link + 1);
  }
  constexpr double bytes = 1e9;
  std::vector<double> rates;
  double begin_s = 0;
  const auto start = [&](sim::LinkIndex link) { machine.transfer(host, host, std::vector{link}, bytes, link); };
  machine.after(0, links);
  machine.run([&](sim::Token token) {
    if (token < links) rates.push_back(bytes / (machine.now() - begin_s));
    begin_s = machine.now();
    if (rates.size() < links) start(static_cast<sim::LinkIndex>(rates.size()));
  });
  return rates;
}

}  // namespace

double reference_step(const sim::Job& job, double jitter) {
  const sim::CommunicationModel model = sim::communication_of(job.system, job.workload, cluster_of(job));
  const workloads::Compiled compiled = sim::compiled_for_simulation(job);
  const sim::Fold fold =
      job.system.simulation.all_ranks ? sim::unfolded(job.system, job.workload) : sim::fold(job.system, job.workload, compiled, model);
  const workloads::StepGraph graph = workloads::build_step(job.workload, compiled, fold.ranks);
  const sim::Prices prices = sim::price_graph(job.system, job.workload, model, graph);
  sim::Machine machine;
  std::vector<sim::HostIndex> hosts;
  for (std::size_t i = 0; i < graph.ranks.size(); ++i) hosts.push_back(machine.add_host(sim::contention_speeds(job.system.gpu)));
  sim::CommPlanner planner(job.system, workloads::rank_grid(job.workload), model, graph, fold.ranks, prices, machine, hosts,
                           job.system.simulation.all_ranks ? nullptr : &fold);
  const sim::CommPlans plans = planner.plans();
  const std::vector<sim::PortLink> ports = planner.port_links();
  machine.seal();
  std::vector<double> rates = measured_rates(machine, plans, hosts[0]);
  config::Random random(1);
  for (double& rate : rates) rate *= 1 + jitter * (2 * random.uniform() - 1);
  return reference_run({job.system.gpu, graph, prices, plans, ports, rates}).step_s;
}

}  // namespace rehearse::tests
