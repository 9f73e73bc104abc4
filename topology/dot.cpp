// Export to Graphviz. Up to 32 nodes everything is drawn; above, node0 in detail, the other nodes as one box and each tier of switches as
// one.
#include <fmt/format.h>
#include <fmt/ostream.h>

#include <algorithm>
#include <map>
#include <ostream>
#include <set>

#include "config/quantity.hpp"
#include "topology/dot.hpp"
#include "topology/fabric_impl.hpp"

namespace rehearse::topology {
namespace {

std::string quoted(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '"' || c == '\\' ? std::string{'\\', c} : std::string{c};
  return out;
}

constexpr int most_nodes_in_detail = 32;

class Drawing {
 public:
  // Names begin with the prefix.
  Drawing(const Plan& plan, const Mask& mask, std::string prefix = "")
      : plan_(plan), at_(plan.layout), mask_(mask), prefix_(std::move(prefix)), whole_(at_.nodes <= most_nodes_in_detail) {
    if (whole_) return;
    tier_boxes();
    others_ = fmt::format("{}nodes 1-{}", prefix_, at_.nodes - 1);
    domains_ = prefix_ + (at_.domains == 1 ? "supernode0/nvswitch" : fmt::format("{} supernodes", at_.domains));
  }

  void write(std::ostream& out) const {
    begin_dot(plan_.cluster.name, out);
    write_nodes(out);
    write_edges(out);
    out << "}\n";
  }

  // As a part of another graph; what stands for its top switches.
  std::string write_part(const std::string& part, std::ostream& out) const {
    fmt::print(out, "  subgraph \"cluster_{}\" {{\n    label=\"{}\";\n", quoted(part), quoted(part));
    write_nodes(out);
    out << "  }\n";
    write_edges(out);
    std::string top;
    int highest = 0;
    for (VertexId v = at_.switch0; v < at_.host0; ++v) {
      if (const int level = plan_.level(v); top.empty() || level > highest) {
        highest = level;
        top = quoted(box(v));
      }
    }
    return top;
  }

 private:
  struct Bundle {
    int links = 0;
    double slowest = 0, fastest = 0;
    bool broken = false;
    void add(const Link& link, bool alive) {
      const double rate = link.bandwidth_bytes_per_s;
      slowest = links == 0 ? rate : std::min(slowest, rate);
      fastest = std::max(fastest, rate);
      broken = broken || !alive;
      ++links;
    }
  };

  static std::string human(double rate) { return config::human_quantity(rate, config::Dimension::bandwidth); }

  static std::string label(const Bundle& b) {
    const std::string rate = b.slowest == b.fastest ? human(b.fastest) : human(b.slowest) + " to " + human(b.fastest);
    return b.links == 1 ? rate : fmt::format("{} x {}", b.links, rate);
  }

  void tier_boxes() {
    for (const auto& tier : plan_.tiers) {
      const std::string box = prefix_ + (tier.count > 1 ? fmt::format("{} x {}", tier.count, tier.name) : tier.name);
      boxes_.insert(boxes_.end(), tier.count, box);
    }
  }

  // Node a vertex belongs to, or -1.
  [[nodiscard]] int node_of(VertexId v) const {
    if (v < at_.node_switch0) return at_.node_of(static_cast<int>(v));
    if (v < at_.domain_switch0) return static_cast<int>(v - at_.node_switch0);
    if (v >= at_.nic0 && v < at_.switch0) return static_cast<int>(v - at_.nic0) / at_.rails;
    if (v >= at_.host0 && v < at_.disk0) return static_cast<int>(v - at_.host0);
    return v >= at_.disk0 && v < at_.shared0 ? static_cast<int>(v - at_.disk0) : -1;
  }

  [[nodiscard]] std::string named(VertexId v) const { return prefix_ + plan_.name(v); }

  // The box that stands for a vertex.
  [[nodiscard]] std::string box(VertexId v) const {
    if (whole_ || node_of(v) == 0) return named(v);
    if (node_of(v) > 0) return others_;
    if (v < at_.nic0) return domains_;
    return v >= at_.shared0 ? named(v) : boxes_[v - at_.switch0];
  }

  void write_nodes(std::ostream& out) const {
    std::map<int, std::vector<VertexId>> inside;
    std::set<std::string> drawn;
    for (VertexId v = 0; v < at_.vertices; ++v) {
      const int node = node_of(v);
      if (node >= 0 && (whole_ || node == 0)) {
        inside[node].push_back(v);
      } else if (drawn.insert(box(v)).second) {
        fmt::print(out, "  \"{}\"{};\n", quoted(box(v)), broken(v));
      }
    }
    for (const auto& [node, vertices] : inside) {
      const std::string graph =
          prefix_.empty() ? "cluster_node" + std::to_string(node) : fmt::format("\"cluster_{}node{}\"", quoted(prefix_), node);
      fmt::print(out, "  subgraph {} {{\n    label=\"node{}\";\n", graph, node);
      for (const VertexId v : vertices) fmt::print(out, "    \"{}\"{};\n", quoted(named(v)), broken(v));
      out << "  }\n";
    }
  }

  [[nodiscard]] const char* broken(VertexId v) const { return mask_.alive_vertex(v) ? "" : " [color=red, style=dashed]"; }

  // One line per pair of boxes; both directions of a link have the same rate but for storage, where the one towards it is shown.
  void write_edges(std::ostream& out) const {
    std::map<std::pair<std::string, std::string>, Bundle> bundles;
    for (LinkId id = 0; id < plan_.links.size(); ++id) {
      const Link& link = plan_.links[id];
      if (link.from > link.to) continue;
      std::pair<std::string, std::string> ends{box(link.from), box(link.to)};
      if (ends.first != ends.second) bundles[std::move(ends)].add(link, mask_.alive(id));
    }
    for (const auto& [ends, bundle] : bundles) {
      fmt::print(out, "  \"{}\" -- \"{}\" [label=\"{}\"{}];\n", quoted(ends.first), quoted(ends.second), label(bundle),
                 bundle.broken ? ", color=red, style=dashed" : "");
    }
  }

  const Plan& plan_;
  const Layout& at_;
  const Mask& mask_;
  std::string prefix_;
  bool whole_;
  std::vector<std::string> boxes_;  // by network switch, when not drawn whole
  std::string others_, domains_;
};

}  // namespace

void begin_dot(const std::string& name, std::ostream& out) {
  fmt::print(out, "graph \"{}\" {{\n  node [shape=box, fontname=\"sans-serif\"];\n  edge [fontname=\"sans-serif\", fontsize=9];\n",
             quoted(name));
}

void Fabric::write_dot(std::ostream& out) const { Drawing(*impl_->plan, impl_->mask).write(out); }

std::string Fabric::write_dot_part(const std::string& part, std::ostream& out) const {
  return Drawing(*impl_->plan, impl_->mask, part + "/").write_part(part, out);
}

}  // namespace rehearse::topology
