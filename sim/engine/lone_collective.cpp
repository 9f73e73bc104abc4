#include "sim/engine/lone_collective.hpp"

#include <fmt/format.h>

#include <numeric>

#include "config/yaml_text.hpp"
#include "sim/communication_of.hpp"
#include "sim/engine/child_process.hpp"
#include "sim/engine/executor.hpp"
#include "sim/engine/folding.hpp"
#include "sim/job/limits.hpp"
#include "sim/job/override.hpp"
#include "sim/job/parts.hpp"
#include "sim/job/simulation_keys.hpp"
#include "topology/nic_scale.hpp"
#include "workloads/step_builder.hpp"

namespace rehearse::sim {
namespace {

using workloads::CollectiveKind;
using workloads::GroupKind;

// Every simulated rank takes part once.
workloads::StepGraph graph_of(const workloads::Communication& what, const workloads::Folding& folding, int gpus) {
  std::vector<int> members(static_cast<std::size_t>(gpus));
  std::iota(members.begin(), members.end(), 0);
  std::vector<std::uint32_t> simulated(folding.ranks.size());
  std::iota(simulated.begin(), simulated.end(), 0U);
  workloads::StepGraphBuilder builder(folding.ranks);
  const std::uint32_t group = builder.add_group(what.group, members, simulated);
  const std::uint32_t call = builder.add_call(what, 1, group);
  for (const std::uint32_t rank : simulated) {
    builder.add({workloads::OpKind::collective, workloads::Stream::dp, workloads::Phase::dp, rank, call}, what.name);
  }
  return std::move(builder).freeze();
}

double execute_alone(const System& system, const CommunicationModel& model, const workloads::RankGrid& grid,
                     const workloads::StepGraph& graph, const Fold& fold, const Prices& prices) {
  return run_in_child([&] {
           Machine machine;
           std::vector<HostIndex> hosts;
           for (std::size_t i = 0; i < fold.ranks.ranks.size(); ++i) hosts.push_back(machine.add_host(contention_speeds(system.gpu)));
           CommPlanner planner(system, grid, model, graph, fold.ranks, prices, machine, hosts,
                               system.simulation.all_ranks ? nullptr : &fold);
           const CommPlans plans = planner.plans();
           machine.seal();
           return std::vector<double>{execute({system, graph, prices, plans, planner.port_links(), hosts}, machine, {}).front().step_s};
         })
      .front();
}

void check_gpus(const topology::ClusterSpec& cluster, int gpus) {
  const int most = cluster.max_gpus() > 0 ? cluster.max_gpus() : most_gpus;
  if (gpus > most) throw config::InputError(fmt::format("cluster '{}' has {} GPUs, not {}", cluster.name, most, gpus));
}

}  // namespace

LoneCollective run_alone(const Job& job, CollectiveKind kind, double bytes) {
  const workloads::Communication what{std::string(name_of(kind)), kind, GroupKind::dp_cp, bytes, workloads::Pass::update};
  const CommunicationModel model = communication_of(job.system, job.workload);
  const Fold fold =
      job.system.simulation.all_ranks ? unfolded(job.system, job.workload) : sim::fold(job.system, job.workload, model, {what});
  const workloads::StepGraph graph = graph_of(what, fold.ranks, job.system.gpus);
  const Prices prices = price_graph(job.system, job.workload, model, graph);
  const CallPrice& price = prices.calls.front();
  LoneCollective out{.kind = kind,
                     .algorithm = price.algorithm,
                     .protocol = std::string(price.protocol_name()),
                     .gpus = job.system.gpus,
                     .gpus_per_node = job.system.cluster.gpus_per_node,
                     .bytes = bytes,
                     .formula_s = price.seconds()};
  if (job.system.gpus == 1) return out;
  out.simulated_s = execute_alone(job.system, model, workloads::rank_grid(job.workload), graph, fold, prices);
  const workloads::Bandwidth bandwidth = workloads::nccl_bandwidth(kind, job.system.gpus, bytes, out.simulated_s);
  out.algbw_bytes_per_s = bandwidth.algbw_bytes_per_s;
  out.busbw_bytes_per_s = bandwidth.busbw_bytes_per_s;
  return out;
}

Job one_group(Job job, int gpus) {
  check_gpus(job.system.cluster, gpus);
  job.system.gpus = gpus;
  job.workload = {};
  job.workload.parallel.dp = gpus;
  return job;
}

Job cluster_alone(const std::string& cluster, int gpus, const std::vector<std::pair<std::string, std::string>>& sets) {
  config::Node document = config::Node::load_text(fmt::format("cluster: {}\n", config::yaml_text(cluster)), "--collective");
  for (const auto& [key, value] : sets) set_in_job(document, key, value, {});
  document.allow_keys({"cluster", "simulation", "software"});
  Part part = find_part(document.at("cluster"), cluster_part);
  const Part gpu = find_part(part.node.at("gpu"), gpu_part);
  part.node.set("gpu", config::yaml_text(gpu.name));
  Job job;
  job.name = part.name;
  job.system.cluster = topology::read_cluster(part.node, part.name);
  job.system.gpu = read_gpu(gpu.node, gpu.name);
  const auto named = document.find("software");
  const Part software = named ? find_part(*named, software_part) : ready_made(software_part, default_software(job.system.gpu.vendor));
  job.system.software = read_software(software.node, software.name);
  simulation_keys().read(document.find("simulation"), job.system.simulation);
  if (gpus == 0) gpus = job.system.cluster.max_gpus() > 0 ? job.system.cluster.max_gpus() : job.system.cluster.domain_gpus();
  topology::settle_nics(job.system.cluster, part.node, (gpus + job.system.cluster.gpus_per_node - 1) / job.system.cluster.gpus_per_node);
  return one_group(std::move(job), gpus);
}

}  // namespace rehearse::sim
