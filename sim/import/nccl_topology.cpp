// NCCL's topology XML (NCCL_TOPO_DUMP_FILE): system > cpu > pci > gpu > nvlink, nic > net.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <pugixml.hpp>

#include "sim/import/importer.hpp"
#include "sim/import/node_facts.hpp"
#include "sim/import/text_file.hpp"

namespace rehearse::sim {
namespace {

constexpr int deepest_element = 16;
constexpr std::string_view nvswitch_class = "0x068000";

class NcclTopologyReader {
 public:
  explicit NcclTopologyReader(const TextFile& file) : file_(file) {}

  NodeFacts read() {
    const pugi::xml_parse_result parsed = document_.load_buffer(file_.text.data(), file_.text.size());
    if (!parsed)
      fail_at(static_cast<std::size_t>(std::max<std::ptrdiff_t>(parsed.offset, 0)), fmt::format("not XML: {}", parsed.description()));
    const pugi::xml_node system = document_.child("system");
    if (!system) fail_at(0, "a file of NCCL begins with <system version=\"1\">", "NCCL_TOPO_DUMP_FILE=topo.xml writes it");
    walk(system, 0);
    if (gpus_.empty()) fail(system, "there is no <gpu> here");
    NodeFacts facts;
    facts.gpus = static_cast<int>(gpus_.size());
    facts.compute = number(gpus_.front(), "sm", 0, 200);
    for (const pugi::xml_node& gpu : gpus_) {
      if (number(gpu, "sm", 0, 200) != facts.compute) fail(gpu, "GPUs of different kinds in one machine are not simulated");
    }
    read_wire(facts);
    read_host(facts);
    read_ports(facts);
    return facts;
  }

 private:
  [[noreturn]] void fail_at(std::size_t offset, std::string_view message, std::string_view hint = {}) const {
    const config::Position at = file_.at_offset(offset);
    file_.fail(at.line, at.column, message, hint);
  }
  [[noreturn]] void fail(const pugi::xml_node& node, std::string_view message, std::string_view hint = {}) const {
    fail_at(static_cast<std::size_t>(std::max<std::ptrdiff_t>(node.offset_debug(), 0)), message, hint);
  }

  int number(const pugi::xml_node& node, const char* name, int low, int high) const {
    const std::string text = node.attribute(name).value();
    const bool digits = !text.empty() && text.size() < 9 && text.find_first_not_of("0123456789") == std::string::npos;
    const int value = digits ? std::stoi(text) : -1;
    if (value < low || value > high)
      fail(node, fmt::format("<{}> needs {}, a whole number from {} to {}, not {}", node.name(), name, low, high, config::shown(text)));
    return value;
  }

  void walk(const pugi::xml_node& node, int depth) {
    if (depth > deepest_element) fail(node, fmt::format("nested deeper than {} levels", deepest_element));
    for (const pugi::xml_node& child : node.children()) {
      if (child.type() != pugi::node_element) continue;
      const std::string_view name = child.name();
      if (name == "gpu") gpus_.push_back(child);
      if (name == "net") nets_.push_back(child);
      walk(child, depth + 1);
    }
  }

  // All links of a GPU go to the switches, or the same number to every other GPU, or there are none.
  void read_wire(NodeFacts& facts) {
    const double each = nvlink_gb_per_s(facts.compute);
    std::map<std::string, int> peers;
    int switched = 0;
    for (const pugi::xml_node& gpu : gpus_) {
      int links = 0;
      for (const pugi::xml_node& link : gpu.children("nvlink")) {
        const int count = number(link, "count", 1, 64);
        links += count;
        if (std::string_view(link.attribute("tclass").value()) == nvswitch_class) {
          switched += count;
        } else if (&gpu == &gpus_.front()) {
          peers[link.attribute("target").value()] += count;
        }
      }
      if (&gpu == &gpus_.front()) facts.links = links;
      if (links != facts.links) fail(gpu, fmt::format("a GPU with {} NVLinks beside one with {} is not simulated", links, facts.links));
    }
    const pugi::xml_node pci = gpus_.front().parent();
    facts.pcie_gb_per_s = pcie_of(pci);
    if (facts.links == 0) {
      facts.wire = facts.gpus > 1 ? NodeFacts::Wire::pcie : NodeFacts::Wire::none;
      facts.wire_gb_per_s = facts.pcie_gb_per_s;
      return;
    }
    if (each == 0) fail(gpus_.front(), fmt::format("the NVLinks of compute capability {} are not known", facts.compute));
    if (switched == facts.links * facts.gpus) {
      facts.wire = NodeFacts::Wire::nvswitch;
      facts.wire_gb_per_s = each * facts.links;
      return;
    }
    const bool even = static_cast<int>(peers.size()) == facts.gpus - 1 &&
                      std::ranges::all_of(peers, [&](const auto& peer) { return peer.second == peers.begin()->second; });
    if (!even) fail(gpus_.front(), "NVLinks that neither all go to switches nor alike to all other GPUs are not simulated");
    facts.wire = NodeFacts::Wire::mesh;
    facts.wire_gb_per_s = each * peers.begin()->second;
  }

  // Grace: GPUs on NVLink-C2C, whose links state their rate in MB/s.
  void read_host(NodeFacts& facts) const {
    for (pugi::xml_node above = gpus_.front(); above; above = above.parent()) {
      facts.grace = facts.grace || std::string_view(above.attribute("arch").value()) == "arm64";
    }
    for (const pugi::xml_node& link : gpus_.front().children("c2c")) {
      facts.c2c_gb_per_s += number(link, "bw", 1, 10'000'000) / 1000.0 * number(link, "count", 1, 64);
    }
  }

  // link_speed="16 GT/s" (also "16.0 GT/s PCIe"), link_width="16"; 0 where it is not said.
  double pcie_of(const pugi::xml_node& pci) const {
    const std::string speed = pci.attribute("link_speed").value();
    if (speed.empty() || pci.attribute("link_width").empty()) return 0;
    char* end = nullptr;
    const double gt = std::strtod(speed.c_str(), &end);
    const bool fits = end != speed.c_str() && gt >= 2.5 && gt <= 128 && std::string_view(end).starts_with(" GT/s");
    if (!fits) fail(pci, fmt::format("link_speed is not {}", config::shown(speed)), "for example \"16 GT/s\"");
    return pcie_gb_per_s(gt, number(pci, "link_width", 1, 32));
  }

  // The fastest ports, and of each GPU the nearest of them: the one with which it shares the lowest part of the tree.
  void read_ports(NodeFacts& facts) {
    int fastest = 0;
    for (const pugi::xml_node& net : nets_) fastest = std::max(fastest, number(net, "speed", 1, 10'000'000));
    std::vector<pugi::xml_node> ports;
    for (const pugi::xml_node& net : nets_) {
      if (number(net, "speed", 1, 10'000'000) == fastest) ports.push_back(net);
    }
    facts.nics = static_cast<int>(ports.size());
    facts.nic_gbps = fastest / 1000.0;
    for (const pugi::xml_node& gpu : gpus_) {
      int best = 0, nearest = -1;
      for (std::size_t i = 0; i < ports.size(); ++i) {
        const int shared = shared_depth(gpu, ports[i]);
        const bool taken = std::ranges::find(facts.rails, static_cast<int>(i)) != facts.rails.end();
        // Of equally near ones the first that no other GPU has.
        if (2 * shared + (taken ? 0 : 1) > best) {
          best = 2 * shared + (taken ? 0 : 1);
          nearest = static_cast<int>(i);
        }
      }
      if (nearest >= 0) facts.rails.push_back(nearest);
    }
  }

  static int shared_depth(pugi::xml_node a, pugi::xml_node b) {
    std::vector<pugi::xml_node> above;
    for (; a; a = a.parent()) above.push_back(a);
    int steps = 0;
    for (; b; b = b.parent(), ++steps) {
      const auto found = std::ranges::find(above, b);
      if (found != above.end()) return static_cast<int>(above.end() - found);
    }
    return 0;
  }

  const TextFile& file_;
  pugi::xml_document document_;
  std::vector<pugi::xml_node> gpus_, nets_;
};

class NcclTopology final : public Importer {
 public:
  [[nodiscard]] std::string_view summary() const override { return "a cluster, from the topology XML of NCCL (NCCL_TOPO_DUMP_FILE)"; }
  [[nodiscard]] Draft read(const ImportRequest& request) const override {
    const TextFile file = load_text_file(request.path);
    Draft draft(Draft::Kind::cluster);
    describe_node(NcclTopologyReader(file).read(), draft);
    return draft;
  }
};

const ImporterRegistry::Registration<NcclTopology> nccl_topology_registration("nccl-topology");

}  // namespace
}  // namespace rehearse::sim
