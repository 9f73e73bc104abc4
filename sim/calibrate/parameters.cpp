#include "sim/calibrate/parameters.hpp"

#include <algorithm>

#include "config/data_dir.hpp"
#include "config/quantity.hpp"
#include "config/yaml_text.hpp"
#include "sim/cost/cost_model.hpp"

namespace rehearse::sim {
namespace {

using config::Dimension;
using config::Node;

// How far off a value may well be before anything is measured, as standard deviations of its logarithm: shares of peaks and rates are known
// within a third, host times and latencies within a factor of two to three.
constexpr double share_prior = 0.35, time_prior = 0.9;
constexpr double least_share = 0.01, most_modified = 1.5;

void add_share(std::vector<FitParameter>& to, const Node& part, const std::string& prefix, const std::string& path, double most) {
  const auto node = part.find_path(path);
  if (!node) return;
  const double value = node->as_number(0, 2);
  if (value >= least_share)
    to.push_back({.key = prefix + path, .value = value, .low = least_share, .high = std::max(most, value), .prior = share_prior});
}

void add_time(std::vector<FitParameter>& to, const Node& part, const std::string& prefix, const std::string& path) {
  const auto node = part.find_path(path);
  if (!node) return;
  const double us = node->as_quantity(Dimension::time) * 1e6;
  if (us > 0) to.push_back({.key = prefix + path, .value = us, .low = us / 100, .high = us * 100, .prior = time_prior, .unit = "us"});
}

void add_models(std::vector<FitParameter>& to, const Node& efficiency, const std::string& prefix, const std::string& cls) {
  const auto models = efficiency.find(cls);
  if (!models || !models->is_map()) return;
  for (const std::string& precision : models->keys()) {
    const Node model = models->at(precision);
    if (!model.is_map() || !model.find("model")) continue;
    const double most = model.at("model").as_string() == "roofline" ? 1 : most_modified;
    const std::string path = cls + "." + precision + ".";
    add_share(to, efficiency, prefix, path + "compute", most);
    add_share(to, efficiency, prefix, path + "memory", most);
  }
}

void add_gpu(JobParameters& all, const Part& part, const Gpu& gpu) {
  const std::string prefix = "cluster.gpu.efficiency.";
  const auto own = part.node.find("efficiency");
  const Node efficiency = own ? *own : common_efficiency_mapping(gpu);
  if (!own) all.first.emplace_back("cluster.gpu.efficiency", config::one_line(efficiency));
  // A file that gets lines of its own keeps what it had without saying.
  const auto keep = [&](const std::string& key, const Node& common) {
    if (!own && !part.node.find(key) && !common.keys().empty()) all.first.emplace_back("cluster.gpu." + key, config::one_line(common));
  };
  keep("contention", common_contention_mapping(gpu));
  keep("flash", common_flash_mapping(gpu));
  add_models(all.parameters, efficiency, prefix, "gemm");
  add_models(all.parameters, efficiency, prefix, "attention");
  add_share(all.parameters, efficiency, prefix, "memory_bound.memory", 1);
}

void add_cluster(std::vector<FitParameter>& to, const Node& cluster) {
  add_share(to, cluster, "cluster.", "intra_node.efficiency", 1);
  add_share(to, cluster, "cluster.", "supernode.efficiency", 1);
  add_share(to, cluster, "cluster.", "nics.efficiency", 1);
  if (const auto by_nodes = cluster.find_path("nics.by_nodes")) {
    for (const std::string& nodes : by_nodes->keys()) add_share(to, cluster, "cluster.", "nics.by_nodes." + nodes, 1);
  }
  add_time(to, cluster, "cluster.", "intra_node.latency");
  add_time(to, cluster, "cluster.", "nics.latency");
}

void add_software(std::vector<FitParameter>& to, const Node& software) {
  for (const char* key : {"issue", "step", "launch"}) add_time(to, software, "software.", key);
}

}  // namespace

JobParameters parameters_of(const Job& job, const FittedParts& which) {
  JobParameters all;
  if (which.gpu) add_gpu(all, job.parts->gpu, job.system.gpu);
  if (which.cluster) add_cluster(all.parameters, job.parts->cluster.node);
  if (which.software) add_software(all.parameters, job.parts->software.node);
  return all;
}

JobParameters parameters_of_gpu(const Part& part, const Gpu& gpu) {
  JobParameters all;
  add_gpu(all, part, gpu);
  return all;
}

Settings settings_of(const JobParameters& all, std::span<const double> values) {
  Settings settings = all.first;
  for (std::size_t i = 0; i < all.parameters.size(); ++i) settings.emplace_back(all.parameters[i].key, all.parameters[i].text(values[i]));
  return settings;
}

Settings settings_of_fitted(const JobParameters& all, std::span<const FittedParameter> fitted) {
  JobParameters kept{{}, all.first};
  std::vector<double> values;
  for (std::size_t i = 0; i < all.parameters.size(); ++i) {
    if (!fitted[i].fitted) continue;
    kept.parameters.push_back(all.parameters[i]);
    values.push_back(fitted[i].value);
  }
  return values.empty() ? Settings{} : settings_of(kept, values);
}

Node fitted_part(const PartKind& kind, const Part& part, const std::string& prefix, const Settings& settings) {
  Node out;
  if (config::data_file(kind.folder, part.name).empty()) {
    out = part.node;
  } else {
    out.set_child(like, Node::scalar(part.name));
  }
  const std::string inner = prefix == "cluster." ? "cluster.gpu." : "";  // a part of the part
  for (const auto& [key, value] : settings) {
    if (key.starts_with(prefix) && (inner.empty() || !key.starts_with(inner))) out.set(key.substr(prefix.size()), value);
  }
  return out;
}

}  // namespace rehearse::sim
