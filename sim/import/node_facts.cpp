#include "sim/import/node_facts.hpp"

#include <fmt/format.h>

#include <array>
#include <set>

#include "config/data_dir.hpp"
#include "sim/job/parts.hpp"

namespace rehearse::sim {
namespace {

using config::Node;
using Wire = NodeFacts::Wire;

// The GPU of a compute capability, and the ready-made cluster that such machines were measured in.
struct KnownGpu {
  int compute;
  bool nvlink, grace;
  const char *gpu, *cluster;
};
constexpr std::array known_gpus{
    KnownGpu{70, true, false, "v100-sxm3-32g", "dgx2-v100-32g"}, KnownGpu{80, true, false, "a100-sxm4-80g", "dgx-a100-80g-hdr200"},
    KnownGpu{80, false, false, "a100-pcie-40g", "pcie-box-4"},   KnownGpu{90, true, false, "h100-sxm5-80g", "dgx-h100-ndr400"},
    KnownGpu{100, true, false, "b200-sxm", "dgx-b200-ndr400"},   KnownGpu{103, true, false, "b300-sxm", "dgx-b300-xdr800"},
    KnownGpu{100, true, true, "gb200", "gb200-nvl72"},           KnownGpu{103, true, true, "gb300", "gb300-nvl72"},
};

const KnownGpu* known_for(const NodeFacts& facts) {
  for (const KnownGpu& known : known_gpus) {
    if (known.compute == facts.compute && known.nvlink == (facts.links > 0) && known.grace == facts.grace) return &known;
  }
  return nullptr;
}

// The cluster that efficiency and latency are taken from, where the GPU is not known too.
const char* like_of(const NodeFacts& facts, const KnownGpu* known) {
  if (known != nullptr) return known->cluster;
  return facts.links > 0 ? "dgx-h100-ndr400" : "pcie-box-4";
}

void take_measured(const Node& like, const char* section, const std::string& whose, Draft& draft) {
  const auto found = like.find(section);
  if (!found) return;
  for (const char* key : {"efficiency", "latency", "in_network"}) {
    const auto value = found->find(key);
    if (value) draft.set(fmt::format("{}.{}", section, key), *value);
  }
  draft.infer(fmt::format("{}: efficiency and latency as measured on {}", section, whose));
}

void describe_wire(const NodeFacts& facts, Draft& draft) {
  draft.set("intra_node.kind", facts.wire == Wire::nvswitch ? "nvswitch"
                               : facts.wire == Wire::mesh   ? "full_mesh"
                               : facts.wire == Wire::pcie   ? "pcie"
                                                            : "none");
  if (facts.wire == Wire::none) return;
  if (facts.wire_gb_per_s > 0) return draft.set("intra_node.bandwidth", fmt::format("{:.4g} GB/s", facts.wire_gb_per_s));
  draft.need("intra_node.bandwidth", facts.links > 0 ? "so many NVLinks are 450 GB/s on H100 and H200, 900 GB/s on B200"
                                                     : "of a GPU's PCIe link: 31.5 GB/s in generation 4, 63 in 5");
}

bool one_nic_each(const NodeFacts& facts) {
  const std::set<int> distinct(facts.rails.begin(), facts.rails.end());
  return distinct.size() == facts.rails.size();
}

void describe_network(const NodeFacts& facts, Draft& draft) {
  if (facts.nics == 0) {
    draft.set("nodes", 1);
    return draft.infer("nodes: 1, since no network port serves the GPUs");
  }
  draft.set("nics.per_node", facts.nics);
  if (facts.nic_gbps > 0) {
    draft.set("nics.bandwidth", fmt::format("{:.4g} Gbps", facts.nic_gbps));
  } else {
    draft.need("nics.bandwidth", "the file does not say, e.g. '400 Gbps'");
  }
  const bool rails = facts.nics >= facts.gpus && one_nic_each(facts);
  draft.set("network.kind", rails ? "rail_optimised" : "single_switch");
  if (rails) draft.set("network.nodes_per_leaf", 32);
  std::string order;
  for (const int rail : facts.rails) order += fmt::format("{}{}", order.empty() ? "" : " ", rail);
  draft.infer(fmt::format("nearest network ports of the GPUs: {}", order));
  draft.infer(rails ? "network: rail_optimised, 32 nodes a leaf, nothing oversubscribed: nothing here says what is behind the ports"
                    : "network: single_switch: nothing here says what is behind the ports");
}

}  // namespace

double pcie_gb_per_s(double gt_per_s, int lanes) {
  const double coded = gt_per_s > 32 ? 242.0 / 256 : gt_per_s > 5 ? 128.0 / 130 : 8.0 / 10;
  return gt_per_s * lanes * coded / 8;
}

double nvlink_gb_per_s(int compute) {
  if (compute == 60) return 20;
  if (compute == 70 || compute == 80 || compute == 90) return 25;
  return compute == 100 || compute == 103 ? 50 : 0;
}

void describe_node(const NodeFacts& facts, Draft& draft) {
  const KnownGpu* known = known_for(facts);
  if (known != nullptr) {
    draft.set("gpu", known->gpu);
    draft.infer(fmt::format("gpu: {}; of those with compute capability {}.{} the file does not say which", known->gpu, facts.compute / 10,
                            facts.compute % 10));
  } else {
    draft.need("gpu", "the file does not say which (rehearse list gpus)");
  }
  draft.set("gpus_per_node", facts.gpus);
  describe_wire(facts, draft);
  describe_network(facts, draft);
  const bool own_port = facts.wire != Wire::pcie;  // else copies to the host use the port that the GPUs share
  if (facts.c2c_gb_per_s > 0) {
    draft.set("host.bandwidth", fmt::format("{:.4g} GB/s", facts.c2c_gb_per_s));
  } else if (facts.pcie_gb_per_s > 0 && own_port) {
    draft.set("host.bandwidth", fmt::format("{:.4g} GB/s", facts.pcie_gb_per_s));
  } else if (own_port) {
    draft.need("host.bandwidth", "of a GPU's PCIe link: 31.5 GB/s in generation 4, 63 GB/s in 5");
  }
  const std::string cluster = like_of(facts, known), path = config::data_file("platforms/clusters", cluster);
  if (path.empty()) return;
  const Node like = Node::load_file(path);
  take_measured(like, "intra_node", cluster, draft);
  if (facts.nics > 0) take_measured(like, "nics", cluster, draft);
  if (own_port) take_measured(like, "host", cluster, draft);
  const auto domain = like.find("supernode");
  if (!domain || facts.wire != Wire::nvswitch) return;
  draft.set("supernode", *domain);
  draft.infer(fmt::format("supernode: that of {}: no node sees how far its NVLinks reach", cluster));
}

}  // namespace rehearse::sim
