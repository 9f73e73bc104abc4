#include "sim/calibrate/network_fit.hpp"

#include <fmt/format.h>

#include <cmath>
#include <set>

#include "sim/communication_of.hpp"
#include "sim/engine/lone_collective.hpp"
#include "sim/import/nccl_tests_table.hpp"
#include "sim/job/override.hpp"
#include "topology/nic_scale.hpp"

namespace rehearse::sim {
namespace {

using config::Node;
using workloads::CollectiveKind;

constexpr double table_noise = 0.02, table_share_prior = 0.5, table_time_prior = 1;  // a table says more than any file
constexpr double least_table_share = 1e-3;

// The first `gpus` GPUs of the cluster as one group.
class Cluster {
 public:
  Cluster(const Node& cluster, const Node& software) : document_(Node::load_text("{}", "calibrate")) {
    document_.set_child("cluster", cluster);
    document_.set_child("software", software);
    part_ = find_part(document_.at("cluster"), cluster_part);
    static_cast<void>(job(Settings{}, 1));
  }

  [[nodiscard]] const Part& part() const { return part_; }

  [[nodiscard]] Job job(const Settings& settings, int gpus) const {
    Node document = document_;
    for (const auto& [key, value] : settings) set_in_job(document, key, value);
    Part part = find_part(document.at("cluster"), cluster_part);
    const Part gpu = take_gpu(part), software = find_part(document.at("software"), software_part);
    Job job;
    job.system.cluster = topology::read_cluster(part.node, part.name);
    const int per_node = job.system.cluster.gpus_per_node;
    topology::settle_nics(job.system.cluster, part.node, (gpus + per_node - 1) / per_node);
    job.system.software = read_software(software.node, software.name);
    return one_group(std::move(job), gpus);
  }

 private:
  Node document_;
  Part part_;
};

int hosts_of(const MeasuredCollective& measured, int gpus_per_node) {
  std::set<int> nodes;
  for (const int member : measured.members) nodes.insert(member / gpus_per_node);
  return static_cast<int>(nodes.size());
}

void check_fits(const std::vector<MeasuredCollective>& all, const topology::ClusterSpec& cluster) {
  for (const MeasuredCollective& each : all) {
    if (each.hosts > 0 && each.hosts != hosts_of(each, cluster.gpus_per_node))
      throw config::InputError(fmt::format("{}: {} ranks on {} hosts, where cluster '{}' has {} GPUs in a node", config::shown(each.source),
                                           each.members.size(), each.hosts, cluster.name, cluster.gpus_per_node));
    if (hosts_of(each, cluster.gpus_per_node) > 1 && cluster.nics_per_node == 0)
      throw config::InputError(fmt::format("{} has collectives between nodes of {} GPUs, but cluster '{}' has no network",
                                           config::shown(each.source), cluster.gpus_per_node, cluster.name));
    if (cluster.max_gpus() > 0 && each.gpus > cluster.max_gpus())
      throw config::InputError(
          fmt::format("{} is of {} GPUs, cluster '{}' has {}", config::shown(each.source), each.gpus, cluster.name, cluster.max_gpus()));
  }
}

FitParameter share(std::string key, double value) { return {std::move(key), value, least_table_share, 1, table_share_prior}; }

FitParameter latency(std::string key, double seconds) {
  return {std::move(key), seconds * 1e6, seconds * 1e4, seconds * 1e8, table_time_prior, "us"};
}

// NCCL's other protocols of a link, whether the file measured them or calls them typical.
void add_protocols(JobParameters& to, const std::string& link, const topology::LinkSpec& spec) {
  for (const auto& [name, protocol] : {std::pair("ll", spec.ll), std::pair("ll128", spec.ll128)}) {
    if (!protocol) continue;
    const std::string at = fmt::format("cluster.{}.{}", link, name);
    to.first.emplace_back(at, fmt::format("{{call: {:.6g} us, latency: {:.6g} us, efficiency: {}}}", protocol->call_s * 1e6,
                                          protocol->latency_s * 1e6, protocol->efficiency));
    to.parameters.push_back(share(at + ".efficiency", protocol->efficiency));
    to.parameters.push_back(latency(at + ".latency", protocol->latency_s));
    if (protocol->call_s > 0) to.parameters.push_back(latency(at + ".call", protocol->call_s));
  }
}

void add_node_links(JobParameters& to, const topology::ClusterSpec& cluster, const Node& document) {
  to.parameters.push_back(share("cluster.intra_node.efficiency", cluster.intra.efficiency));
  to.parameters.push_back(latency("cluster.intra_node.latency", cluster.intra.latency_s));
  add_protocols(to, "intra_node", cluster.intra);
  if (!document.find_path("intra_node.in_network")) return;
  to.parameters.push_back(share("cluster.intra_node.in_network.efficiency", cluster.in_switch.efficiency));
  to.parameters.push_back(latency("cluster.intra_node.in_network.latency", cluster.in_switch.latency_s));
}

// all_nodes: the numbers of nodes of the jobs whose collectives left a node.
void add_nics(JobParameters& to, const Cluster& cluster, const std::set<int>& all_nodes) {
  if (all_nodes.empty()) return;
  const topology::ClusterSpec few = cluster.job({}, 1).system.cluster;
  to.parameters.push_back(latency("cluster.nics.latency", few.nic.latency_s));
  add_protocols(to, "nics", few.nic);
  const double there = cluster.job({}, *all_nodes.begin() * few.gpus_per_node).system.cluster.nic.efficiency;
  if (all_nodes.size() == 1 && there == few.nic.efficiency && !cluster.part().node.find_path("nics.by_nodes")) {
    to.parameters.push_back(share("cluster.nics.efficiency", few.nic.efficiency));
    return;
  }
  std::string listed;
  for (const int nodes : all_nodes) {
    const double now = cluster.job({}, nodes * few.gpus_per_node).system.cluster.nic.efficiency;
    listed += fmt::format("{}{}: {}", listed.empty() ? "" : ", ", nodes, now);
    to.parameters.push_back(share(fmt::format("cluster.nics.by_nodes.{}", nodes), now));
  }
  to.first.emplace_back("cluster.nics.by_nodes", "{" + listed + "}");
}

CollectiveKind kind_of_table(const NcclTestsTable& table) {
  if (table.collective == "all_reduce") return CollectiveKind::all_reduce;
  if (table.collective == "all_gather") return CollectiveKind::all_gather;
  return table.collective == "reduce_scatter" ? CollectiveKind::reduce_scatter : CollectiveKind::all_to_all;
}

std::vector<double> predicted_logs(const Cluster& cluster, const MeasuredCollective& measured, const Settings& settings) {
  const Job job = cluster.job(settings, measured.gpus);
  const CommunicationModel model = communication_of(job.system, job.workload);
  std::vector<double> logs;
  for (const CollectiveTime& time : measured.times) {
    const workloads::Communication what{std::string(name_of(measured.kind)), measured.kind, workloads::GroupKind::dp_cp, time.bytes,
                                        workloads::Pass::update};
    logs.push_back(std::log(model.price(what, measured.members).seconds()));
  }
  return logs;
}

double error_pct(const Cluster& cluster, const MeasuredCollective& measured, const Settings& settings) {
  const std::vector<double> logs = predicted_logs(cluster, measured, settings);
  double sum = 0;
  for (std::size_t i = 0; i < logs.size(); ++i) sum += std::abs(std::expm1(logs[i] - std::log(measured.times[i].seconds)));
  return 100 * sum / static_cast<double>(logs.size());
}

}  // namespace

std::vector<MeasuredCollective> collectives_of_tables(const std::vector<std::string>& files) {
  std::vector<MeasuredCollective> out;
  for (const std::string& file : files) {
    const NcclTestsTable table = read_nccl_tests(file);
    MeasuredCollective measured{
        .source = file, .kind = kind_of_table(table), .members = {}, .gpus = table.ranks, .hosts = table.hosts, .times = {}};
    for (int rank = 0; rank < table.ranks; ++rank) measured.members.push_back(rank);
    for (const NcclTestsRow& row : table.rows) measured.times.push_back({row.bytes, row.time_s});
    out.push_back(std::move(measured));
  }
  return out;
}

NetworkCalibration calibrate_to_collectives(const std::vector<MeasuredCollective>& measured, const Node& described, const Node& software) {
  const Cluster cluster(described, software);
  const topology::ClusterSpec now = cluster.job({}, 1).system.cluster;
  check_fits(measured, now);
  bool inside = false;
  std::set<int> nodes;
  std::vector<double> logs;
  for (const MeasuredCollective& each : measured) {
    if (hosts_of(each, now.gpus_per_node) > 1) {
      nodes.insert((each.gpus + now.gpus_per_node - 1) / now.gpus_per_node);
    } else {
      inside = true;
    }
    for (const CollectiveTime& time : each.times) logs.push_back(std::log(time.seconds));
  }
  JobParameters all;
  if (inside) add_node_links(all, now, cluster.part().node);
  add_nics(all, cluster, nodes);
  NetworkCalibration out;
  out.parameters = all.parameters;
  out.fitted = fit_parameters(all.parameters, logs, table_noise, [&](std::span<const double> values) {
    const Settings settings = settings_of(all, values);
    std::vector<double> predicted;
    for (const MeasuredCollective& each : measured) {
      for (const double log : predicted_logs(cluster, each, settings)) predicted.push_back(log);
    }
    return predicted;
  });
  out.settings = settings_of_fitted(all, out.fitted);
  for (const MeasuredCollective& each : measured) {
    out.errors.push_back({each.source, std::string(name_of(each.kind)), static_cast<int>(each.members.size()),
                          hosts_of(each, now.gpus_per_node), static_cast<int>(each.times.size()), error_pct(cluster, each, {}),
                          error_pct(cluster, each, out.settings)});
  }
  out.cluster = fitted_part(cluster_part, cluster.part(), "cluster.", out.settings);
  return out;
}

}  // namespace rehearse::sim
