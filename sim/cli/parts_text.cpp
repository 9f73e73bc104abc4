#include "sim/cli/parts_text.hpp"

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <algorithm>
#include <ostream>

#include "config/quantity.hpp"
#include "sim/cli/fabric_text.hpp"
#include "sim/report/table.hpp"
#include "sim/serving/cluster_parts.hpp"
#include "sim/serving/placement.hpp"
#include "topology/dot.hpp"

namespace rehearse::cli {
namespace {

using config::Dimension;
using config::human_quantity;
using sim::Align;
using topology::Fabric;

constexpr int nodes_of_a_part = 16;  // where its cluster has no size

std::string rate_text(double bytes_per_s) { return human_quantity(bytes_per_s, Dimension::bandwidth); }

// What all NICs of a part carry; pools have those of their nodes.
double all_ports_bytes_per_s(const Fabric& fabric) {
  const topology::ClusterSpec& cluster = fabric.cluster();
  if (cluster.network.kind == topology::Network::none) return 0;
  return sim::ports_bytes_per_s(cluster, (fabric.gpu_count() + cluster.gpus_per_node - 1) / cluster.gpus_per_node);
}

}  // namespace

// Between two parts.
struct ClusterOfParts::Joint {
  std::size_t one = 0, other = 0;
  const topology::LinkSpec* link = nullptr;
  double one_ports = 0, other_ports = 0;  // bytes/s
  [[nodiscard]] double ports() const { return std::min(one_ports, other_ports); }
  [[nodiscard]] double link_bytes_per_s() const { return link->bandwidth_bytes_per_s > 0 ? link->effective_bytes_per_s() : ports(); }
  [[nodiscard]] double carries() const { return std::min(link_bytes_per_s(), ports()); }
};

ClusterOfParts::ClusterOfParts(const config::Node& cluster) {
  config::Node resolved;
  sim::read_parts(job_, resolved, cluster);
  for (const sim::ClusterPart& part : job_.parts) {
    const int gpus = part.cluster.max_gpus() > 0 ? part.cluster.max_gpus() : nodes_of_a_part * part.cluster.gpus_per_node;
    fabrics_.push_back(Fabric::build(part.cluster, gpus));
  }
}

std::vector<ClusterOfParts::Joint> ClusterOfParts::joints() const {
  std::vector<Joint> out;
  for (std::size_t one = 0; one < fabrics_.size(); ++one) {
    for (std::size_t other = one + 1; other < fabrics_.size(); ++other)
      out.push_back(
          {one, other, &job_.between.of(one, other), all_ports_bytes_per_s(fabrics_[one]), all_ports_bytes_per_s(fabrics_[other])});
  }
  return out;
}

void ClusterOfParts::describe(bool bold, std::ostream& out) const {
  int gpus = 0;
  for (const Fabric& fabric : fabrics_) gpus += fabric.gpu_count();
  fmt::print(out, "{} parts, {} GPUs; GPUs and nodes are counted part after part\n", fabrics_.size(), gpus);
  int first = 0;
  for (std::size_t part = 0; part < fabrics_.size(); ++part) {
    const int last = first + fabrics_[part].gpu_count() - 1;
    fmt::print(out, "\npart {}: GPUs {} to {}\n", job_.parts[part].name, first, last);
    describe_fabric(fabrics_[part], bold, out);
    first = last + 1;
  }
  if (fabrics_.size() < 2) return;
  sim::Table table{.columns = {{"between parts", Align::left},
                               {"joined by"},
                               {"latency"},
                               {"all ports of the one"},
                               {"of the other"},
                               {"carries, one direction"},
                               {"limited by", Align::left}}};
  for (const Joint& joint : joints()) {
    const bool has_none = joint.ports() <= 0;
    const char* limit = has_none ? "a part without a network" : joint.link_bytes_per_s() < joint.ports() ? "what joins them" : "ports";
    table.rows.push_back({fmt::format("{} - {}", job_.parts[joint.one].name, job_.parts[joint.other].name),
                          joint.link->bandwidth_bytes_per_s > 0 ? rate_text(joint.link->effective_bytes_per_s()) : "as the ports",
                          human_quantity(joint.link->latency_s, Dimension::time), rate_text(joint.one_ports), rate_text(joint.other_ports),
                          rate_text(has_none ? 0 : joint.carries()), limit});
  }
  table.bold_header = bold;
  out << '\n';
  table.print(out);
}

void ClusterOfParts::write_dot(std::ostream& out) const {
  topology::begin_dot(job_.cluster_name, out);
  std::vector<std::string> tops;
  for (std::size_t part = 0; part < fabrics_.size(); ++part) tops.push_back(fabrics_[part].write_dot_part(job_.parts[part].name, out));
  for (const Joint& joint : joints()) {
    if (joint.ports() <= 0) continue;
    fmt::print(out, "  \"{}\" -- \"{}\" [label=\"{}\", style=bold];\n", tops[joint.one], tops[joint.other],
               rate_text(joint.link_bytes_per_s()));
  }
  out << "}\n";
}

std::vector<std::string> ClusterOfParts::faults() const {
  std::vector<std::string> out;
  for (std::size_t part = 0; part < fabrics_.size(); ++part) {
    for (const std::string& fault : faults_of(fabrics_[part])) out.push_back(fmt::format("part {}: {}", job_.parts[part].name, fault));
  }
  for (const Joint& joint : joints()) {
    if (joint.ports() > 0) continue;
    out.push_back(
        fmt::format("nothing leads from part {} to part {}: one has no network", job_.parts[joint.one].name, job_.parts[joint.other].name));
  }
  return out;
}

}  // namespace rehearse::cli
