#include <spdlog/spdlog.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <filesystem>
#include <functional>
#include <iterator>
#include <ostream>
#include <sstream>

#include "config/data_dir.hpp"
#include "sim/cli/command.hpp"
#include "sim/cli/fabric_text.hpp"
#include "sim/cli/number.hpp"
#include "sim/cli/parts_text.hpp"
#include "sim/cli/terminal.hpp"
#include "sim/cost/gpu.hpp"
#include "sim/job/limits.hpp"
#include "sim/job/parts.hpp"
#include "sim/report/whole_file.hpp"
#include "topology/fabric.hpp"
#include "topology/nic_scale.hpp"

namespace rehearse::cli {
namespace {

using topology::Fabric;

constexpr int nodes_shown = 16;  // of a cluster without a size of its own, when --gpus does not say

struct TopologyOptions {
  std::string cluster, dot, xml, gpus;
  bool check = false;
};

struct Loaded {
  topology::ClusterSpec cluster;
  config::Node document;
};

// A file, or the name of a ready-made cluster, or of a job that serves.
std::filesystem::path path_of(const std::string& name) {
  std::string ready_made = config::data_file("platforms/clusters", name);
  if (ready_made.empty()) ready_made = config::data_file("workloads/jobs/serving", name);
  if (ready_made.empty() && !std::filesystem::exists(name)) {
    std::vector<std::string> known = config::data_names("platforms/clusters");
    std::ranges::move(config::data_names("workloads/jobs/serving"), std::back_inserter(known));
    throw config::InputError("unknown cluster '" + name + "'", config::suggestion(name, known));
  }
  return ready_made.empty() ? name : ready_made;
}

// Of a cluster's file, or a job's; with all that it has of another which it is like.
Loaded read_loaded(const config::Node& document, const std::filesystem::path& path) {
  const auto of_job = document.is_map() ? document.find("cluster") : std::nullopt;
  sim::Part cluster = sim::find_part(of_job ? *of_job : document, sim::cluster_part);
  if (!of_job) cluster.name = path.stem().string();
  const sim::Part gpu = sim::take_gpu(cluster);
  static_cast<void>(sim::read_gpu(gpu.node, gpu.name));
  return {topology::read_cluster(cluster.node, cluster.name), cluster.node};
}

int gpus_shown(const topology::ClusterSpec& cluster, const std::string& wanted) {
  if (!wanted.empty()) return parse_count("--gpus", wanted, 1, sim::most_gpus);
  return cluster.max_gpus() > 0 ? cluster.max_gpus() : nodes_shown * cluster.gpus_per_node;
}

// To a file, or to standard output for "-".
void export_to(const std::string& target, const std::function<void(std::ostream&)>& writer) {
  if (target == "-") {
    std::ostringstream text;
    writer(text);
    return print_result(text.str());
  }
  sim::SignalsHeld signals;
  sim::WholeFiles files(signals);
  files.write(target, writer);
  for (const std::string& path : files.put_in_place()) spdlog::info("wrote {}", path);
}

Exit say(const std::vector<std::string>& faults) {
  std::string text;
  for (const std::string& fault : faults) text += fault + '\n';
  print_result(faults.empty() ? "every GPU reaches every other, and does so after the loss of any one switch\n" : text);
  return faults.empty() ? Exit::fine : Exit::answer_is_no;
}

// The cluster of a job that serves, or a file that has nothing else; nothing: it has no parts.
std::optional<config::Node> parts_in(const config::Node& document) {
  if (!document.is_map()) return std::nullopt;
  if (document.find("parts")) return document;
  const auto cluster = document.find("cluster");
  return cluster && cluster->is_map() && cluster->find("parts") ? cluster : std::nullopt;
}

Exit show_parts(const config::Node& document, const TopologyOptions& options) {
  if (!options.gpus.empty()) throw config::InputError("--gpus is for a cluster of one kind", "write nodes in each part");
  if (!options.xml.empty()) throw config::InputError("--xml is for a cluster of one kind", "export the cluster of each part");
  const ClusterOfParts cluster(document);
  if (!options.dot.empty()) export_to(options.dot, [&](std::ostream& out) { cluster.write_dot(out); });
  if (options.check) return say(cluster.faults());
  if (!options.dot.empty()) return Exit::fine;
  std::ostringstream text;
  cluster.describe(colour_allowed(Stream::out), text);
  print_result(text.str());
  return Exit::fine;
}

void describe(const Fabric& fabric) {
  std::ostringstream text;
  describe_fabric(fabric, colour_allowed(Stream::out), text);
  print_result(text.str());
}

Exit topology_command(const TopologyOptions& options) {
  const std::filesystem::path path = path_of(options.cluster);
  const config::Node file = config::Node::load_file(path.string());
  if (const auto parts = parts_in(file)) return show_parts(*parts, options);
  auto [cluster, document] = read_loaded(file, path);
  const int gpus = gpus_shown(cluster, options.gpus);
  topology::settle_nics(cluster, document, (gpus + cluster.gpus_per_node - 1) / cluster.gpus_per_node);
  const Fabric fabric = Fabric::build(cluster, gpus);
  if (!options.dot.empty()) export_to(options.dot, [&](std::ostream& out) { fabric.write_dot(out); });
  if (!options.xml.empty()) export_to(options.xml, [&](std::ostream& out) { fabric.write_simgrid_xml(out); });
  if (options.check) return say(faults_of(fabric));
  if (options.dot.empty() && options.xml.empty()) describe(fabric);
  return Exit::fine;
}

class Topology final : public Command {
 public:
  [[nodiscard]] std::string_view summary() const override { return "Show, check or export the graph of a cluster"; }
  [[nodiscard]] std::string_view examples() const override {
    return "Examples:\n"
           "  rehearse topology dgx-a100-80g-hdr200 --gpus 32\n"
           "  rehearse topology job.yaml                       a job's cluster; of one with parts also what joins them\n"
           "  rehearse topology cluster.yaml --check           exit code 1 when one switch is a single point of failure\n"
           "  rehearse topology cluster.yaml --dot - | dot -Tsvg > cluster.svg\n";
  }
  [[nodiscard]] Action declare(CLI::App& app) const override {
    auto options = std::make_shared<TopologyOptions>();
    app.add_option("CLUSTER", options->cluster, "A cluster file, the name of a ready-made cluster (rehearse list clusters), or a job")
        ->required();
    app.add_option("--gpus", options->gpus, "The first N GPUs; default: the whole cluster, or 16 nodes when it has no size")
        ->check(CLI::Validator([](const std::string& text) { return text.empty() ? "needs a number" : ""; }, ""))
        ->type_name("N");
    app.add_option("--dot", options->dot, "Write a Graphviz graph; - is standard output")->type_name("FILE");
    app.add_option("--xml", options->xml, "Write a SimGrid platform file; - is standard output")->type_name("FILE");
    app.add_flag("--check", options->check, "Look for unreachable GPUs and single points of failure");
    return [options] { return topology_command(*options); };
  }
};

const CommandRegistry::Registration<Topology> topology_registration("topology");

}  // namespace
}  // namespace rehearse::cli
