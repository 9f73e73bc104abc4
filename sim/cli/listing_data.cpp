// Ready-made files: models, jobs, clusters, GPUs, software stacks.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "config/data_dir.hpp"
#include "config/quantity.hpp"
#include "sim/cli/listing.hpp"
#include "sim/federated/chain.hpp"
#include "sim/job/job_document.hpp"
#include "sim/job/parts.hpp"
#include "sim/kind/job_kind.hpp"
#include "sim/report/reporter.hpp"

namespace rehearse::cli {
namespace {

using Row = std::vector<Field>;
using config::Dimension;

Field parameters_field(std::string title, double parameters) {
  return {std::move(title), parameters, fmt::format("{:.2f} B", parameters / 1e9)};
}

Field quantity_field(std::string title, double value, Dimension dimension) {
  return {std::move(title), value, config::human_quantity(value, dimension)};
}

Row model_row(const config::Node& node, const std::string& name) {
  const workloads::Model model = workloads::read_model(node, name);
  const workloads::ParameterCount count = workloads::count_parameters(model);
  return {text_field("name", name), count_field("layers", model.layers), count_field("hidden", model.hidden),
          parameters_field("parameters", count.total), parameters_field("active", count.active)};
}

Row chain_row(const config::Node& node, const std::string& name) {
  const std::vector<federated::Cut> cuts = federated::cuts_of(federated::read_chain(node, name));
  const federated::Cut& whole = cuts.back();
  return {text_field("name", name),
          count_field("cuts", static_cast<int>(cuts.size()) - 1),
          {"forward_flops_per_sample", whole.forward_flops, fmt::format("{:.4f} GFLOP", whole.forward_flops / 1e9)},
          quantity_field("parameter_bytes", whole.parameter_bytes, Dimension::bytes)};
}

Row cluster_row(const config::Node& node, const std::string& name) {
  const topology::ClusterSpec cluster = topology::read_cluster(node, name);
  return {text_field("name", name), text_field("gpu", cluster.gpu), count_field("gpus_per_node", cluster.gpus_per_node),
          count_field("nodes", cluster.nodes)};
}

// bf16, or fp16 on a GPU older than bf16.
double peak_16_bit(const sim::Gpu& gpu) {
  for (const auto type : {workloads::DType::bf16, workloads::DType::fp16}) {
    if (const auto peak = gpu.peak_flops_per_s.find(type); peak != gpu.peak_flops_per_s.end()) return peak->second;
  }
  return 0;
}

Row gpu_row(const config::Node& node, const std::string& name) {
  const sim::Gpu gpu = sim::read_gpu(node, name);
  return {text_field("name", name), quantity_field("flops_per_s_16_bit", peak_16_bit(gpu), Dimension::compute_rate),
          quantity_field("memory_bytes", gpu.memory_bytes, Dimension::bytes),
          quantity_field("memory_bytes_per_s", gpu.memory_bytes_per_s, Dimension::bandwidth)};
}

Row software_row(const config::Node& node, const std::string& name) {
  const sim::Software software = sim::read_software(node, name);
  return {text_field("name", name), quantity_field("launch_s", software.launch_s, Dimension::time),
          quantity_field("step_s", software.step_s, Dimension::time)};
}

Row job_row(const config::Node& node, const std::string& name) {
  const std::string kind = sim::kind_of(node);
  const sim::JobSummary job = kind.empty() ? sim::summary_of(sim::load_job({.path = name, .sets = {}, .seed = {}}))
                                           : sim::JobKindRegistry::get(kind).summary(name, node);
  return {text_field("name", name), text_field("model", job.model), text_field("cluster", job.cluster), count_field("gpus", job.gpus),
          text_field("layout", job.layout)};
}

// The sources of a scenario.
Row scenario_row(const config::Node& node, const std::string& name) {
  std::vector<std::string> sources;
  for (const std::string& label : node.keys()) sources.push_back(node.at(label).at("source").as_string());
  std::ranges::sort(sources);
  sources.erase(std::unique(sources.begin(), sources.end()), sources.end());
  return {text_field("name", name), count_field("entries", static_cast<int>(node.keys().size())),
          text_field("sources", fmt::format("{}", fmt::join(sources, ", ")))};
}

// A folder of the data directory, its files read one by one.
template <Row (*row_of)(const config::Node&, const std::string&)>
class Files : public Listing {
 public:
  [[nodiscard]] std::vector<Row> rows() const override {
    std::vector<Row> rows;
    for (const std::string& name : config::data_names(folder())) {
      rows.push_back(row_of(sim::ready_made({"part", folder()}, name).node, name));
    }
    return rows;
  }

 private:
  [[nodiscard]] virtual std::string_view folder() const = 0;
};

class Models final : public Files<model_row> {
  [[nodiscard]] std::string_view folder() const override { return "workloads/models"; }
};
class Chains final : public Files<chain_row> {
  [[nodiscard]] std::string_view folder() const override { return "workloads/chains"; }
};
class Jobs final : public Listing {
 public:
  [[nodiscard]] std::vector<Row> rows() const override {
    std::vector<Row> rows;
    for (const std::string& name : sim::job_names()) rows.push_back(job_row(config::Node::load_file(sim::job_file(name)), name));
    return rows;
  }
};
class Clusters final : public Files<cluster_row> {
  [[nodiscard]] std::string_view folder() const override { return "platforms/clusters"; }
};
class Gpus final : public Files<gpu_row> {
  [[nodiscard]] std::string_view folder() const override { return "platforms/gpus"; }
};
class SoftwareStacks final : public Files<software_row> {
  [[nodiscard]] std::string_view folder() const override { return "platforms/software"; }
};

class Scenarios final : public Files<scenario_row> {
  [[nodiscard]] std::string_view folder() const override { return "workloads/faults"; }
};

const ListingRegistry::Registration<Models> models_registration("models");
const ListingRegistry::Registration<Chains> chains_registration("chains");
const ListingRegistry::Registration<Jobs> jobs_registration("jobs");
const ListingRegistry::Registration<Clusters> clusters_registration("clusters");
const ListingRegistry::Registration<Gpus> gpus_registration("gpus");
const ListingRegistry::Registration<SoftwareStacks> software_stacks_registration("software");
const ListingRegistry::Registration<Scenarios> scenarios_registration("scenarios");

}  // namespace

Field text_field(std::string title, const std::string& text) { return {std::move(title), text, text}; }
Field count_field(std::string title, int count) { return {std::move(title), count, count > 0 ? fmt::format("{}", count) : "any"}; }

}  // namespace rehearse::cli
