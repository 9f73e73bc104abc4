#include "sim/calibrate/network_tables.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <numeric>
#include <set>

#include "config/yaml_text.hpp"
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

CollectiveKind kind_of_table(const NcclTestsTable& table) {
  if (table.collective == "all_reduce") return CollectiveKind::all_reduce;
  if (table.collective == "all_gather") return CollectiveKind::all_gather;
  return table.collective == "reduce_scatter" ? CollectiveKind::reduce_scatter : CollectiveKind::all_to_all;
}

struct Tables {
  std::vector<std::string> files;
  std::vector<NcclTestsTable> all;
  [[nodiscard]] std::set<int> hosts() const {
    std::set<int> hosts;
    for (const NcclTestsTable& table : all) hosts.insert(table.hosts);
    return hosts;
  }
};

// The first `gpus` GPUs of the cluster as one group.
class Cluster {
 public:
  Cluster(const std::string& name, const std::string& software)
      : document_(Node::load_text(fmt::format("cluster: {}\nsoftware: {}\n", config::yaml_text(name), config::yaml_text(software)),
                                  "calibrate")) {
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

void check_fits(const Tables& tables, const topology::ClusterSpec& cluster) {
  for (std::size_t i = 0; i < tables.all.size(); ++i) {
    const NcclTestsTable& table = tables.all[i];
    const bool whole = table.hosts == 1 ? table.ranks <= cluster.gpus_per_node : table.ranks == table.hosts * cluster.gpus_per_node;
    if (!whole)
      throw config::InputError(fmt::format("'{}': {} ranks on {} hosts, where cluster '{}' has {} GPUs in a node", tables.files[i],
                                           table.ranks, table.hosts, cluster.name, cluster.gpus_per_node));
    if (table.hosts > 1 && cluster.nics_per_node == 0)
      throw config::InputError(
          fmt::format("'{}' is a run on {} hosts, but cluster '{}' has no network", tables.files[i], table.hosts, cluster.name));
  }
}

FitParameter share(std::string key, double value) { return {std::move(key), value, least_table_share, 1, table_share_prior}; }

FitParameter latency(std::string key, double seconds) {
  return {std::move(key), seconds * 1e6, seconds * 1e4, seconds * 1e8, table_time_prior, "us"};
}

void add_node_links(JobParameters& to, const topology::ClusterSpec& cluster, const Node& document) {
  to.parameters.push_back(share("cluster.intra_node.efficiency", cluster.intra.efficiency));
  to.parameters.push_back(latency("cluster.intra_node.latency", cluster.intra.latency_s));
  if (!document.find_path("intra_node.in_network")) return;
  to.parameters.push_back(share("cluster.intra_node.in_network.efficiency", cluster.in_switch.efficiency));
  to.parameters.push_back(latency("cluster.intra_node.in_network.latency", cluster.in_switch.latency_s));
}

void add_nics(JobParameters& to, const Cluster& cluster, std::set<int> hosts) {
  hosts.erase(1);
  if (hosts.empty()) return;
  const topology::ClusterSpec few = cluster.job({}, 1).system.cluster;
  to.parameters.push_back(latency("cluster.nics.latency", few.nic.latency_s));
  const double there = cluster.job({}, *hosts.begin() * few.gpus_per_node).system.cluster.nic.efficiency;
  if (hosts.size() == 1 && there == few.nic.efficiency && !cluster.part().node.find_path("nics.by_nodes")) {
    to.parameters.push_back(share("cluster.nics.efficiency", few.nic.efficiency));
    return;
  }
  std::string listed;
  for (const int nodes : hosts) {
    const double now = cluster.job({}, nodes * few.gpus_per_node).system.cluster.nic.efficiency;
    listed += fmt::format("{}{}: {}", listed.empty() ? "" : ", ", nodes, now);
    to.parameters.push_back(share(fmt::format("cluster.nics.by_nodes.{}", nodes), now));
  }
  to.first.emplace_back("cluster.nics.by_nodes", "{" + listed + "}");
}

std::vector<double> predicted_logs(const Cluster& cluster, const NcclTestsTable& table, const Settings& settings) {
  const Job job = cluster.job(settings, table.ranks);
  const CommunicationModel model = communication_of(job.system, job.workload);
  std::vector<int> members(static_cast<std::size_t>(table.ranks));
  std::iota(members.begin(), members.end(), 0);
  std::vector<double> logs;
  for (const NcclTestsRow& row : table.rows) {
    const workloads::Communication what{table.collective, kind_of_table(table), workloads::GroupKind::dp_cp, row.bytes,
                                        workloads::Pass::update};
    logs.push_back(std::log(model.price(what, members).seconds()));
  }
  return logs;
}

double error_pct(const Cluster& cluster, const NcclTestsTable& table, const Settings& settings) {
  const std::vector<double> logs = predicted_logs(cluster, table, settings);
  double sum = 0;
  for (std::size_t i = 0; i < logs.size(); ++i) sum += std::abs(std::expm1(logs[i] - std::log(table.rows[i].time_s)));
  return 100 * sum / static_cast<double>(logs.size());
}

}  // namespace

NetworkCalibration calibrate_to_tables(const std::vector<std::string>& files, const std::string& name, const std::string& software) {
  Tables tables{files, {}};
  for (const std::string& file : files) tables.all.push_back(read_nccl_tests(file));
  const Cluster cluster(name, software);
  const topology::ClusterSpec now = cluster.job({}, 1).system.cluster;
  check_fits(tables, now);
  JobParameters all;
  if (tables.hosts().contains(1)) add_node_links(all, now, cluster.part().node);
  add_nics(all, cluster, tables.hosts());
  std::vector<double> measured;
  for (const NcclTestsTable& table : tables.all) {
    for (const NcclTestsRow& row : table.rows) measured.push_back(std::log(row.time_s));
  }
  NetworkCalibration out;
  out.parameters = all.parameters;
  out.fitted = fit_parameters(all.parameters, measured, table_noise, [&](std::span<const double> values) {
    const Settings settings = settings_of(all, values);
    std::vector<double> logs;
    for (const NcclTestsTable& table : tables.all) {
      for (const double log : predicted_logs(cluster, table, settings)) logs.push_back(log);
    }
    return logs;
  });
  std::vector<double> values;
  for (const FittedParameter& each : out.fitted) values.push_back(each.value);
  const Settings settings = settings_of(all, values);
  for (std::size_t i = 0; i < files.size(); ++i) {
    const NcclTestsTable& table = tables.all[i];
    out.tables.push_back({files[i], table.collective, table.ranks, table.hosts, static_cast<int>(table.rows.size()),
                          error_pct(cluster, table, {}), error_pct(cluster, table, settings)});
  }
  out.cluster = fitted_part(cluster_part, cluster.part(), "cluster.", settings);
  return out;
}

}  // namespace rehearse::sim
