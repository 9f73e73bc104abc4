// nccl-tests' output on one node: latency and bandwidth of its NVLinks.
#include <fmt/format.h>

#include <array>

#include "config/data_dir.hpp"
#include "sim/import/importer.hpp"
#include "sim/import/nccl_tests_table.hpp"

namespace rehearse::sim {
namespace {

using config::Node;

// Ready-made clusters by how the driver calls their GPUs.
struct Known {
  const char *device, *cluster;
};
constexpr std::array known_devices{Known{"A100-SXM4-40GB", "dgx-a100-40g-hdr200"},
                                   Known{"A100-SXM4-80GB", "dgx-a100-80g-hdr200"},
                                   Known{"H100 80GB HBM3", "dgx-h100-ndr400"},
                                   Known{"H200", "nebius-h200"},
                                   Known{"B200", "dgx-b200-ndr400"},
                                   Known{"B300", "dgx-b300-xdr800"}};

Node base_of(const NcclTestsTable& table) {
  for (const Known& known : known_devices) {
    if (table.device.find(known.device) == std::string::npos) continue;
    return Node::load_file(config::data_file("platforms/clusters", known.cluster));
  }
  return {};
}

class NcclTests final : public Importer {
 public:
  [[nodiscard]] std::string_view summary() const override {
    return "a cluster's latency and efficiency, from what nccl-tests print on one node";
  }
  [[nodiscard]] Draft read(const ImportRequest& request) const override {
    const NcclTestsTable table = read_nccl_tests(request.path);
    if (table.hosts > 1)
      throw config::InputError(fmt::format("'{}' is a run over {} nodes; a run on one node measures its links", request.path, table.hosts));
    const AlphaBeta fit = fit_alpha_beta(table);
    Draft draft(Draft::Kind::cluster);
    const Node base = base_of(table);
    if (!base) draft.need("gpu", fmt::format("'{}' is not among the ready-made ones (rehearse list gpus)", table.device));
    if (base) {
      for (const std::string& key : base.keys()) draft.set(key, base.at(key));
      draft.infer(fmt::format("everything but intra_node's efficiency and latency: as of the ready-made cluster with {}", table.device));
    }
    draft.set("gpus_per_node", table.ranks);
    draft.need("intra_node.kind", "the table does not say");
    draft.need("intra_node.bandwidth", "the table does not say the line rate");
    draft.set("intra_node.latency", fmt::format("{:.4g} us", fit.alpha_s * 1e6));
    const auto line = draft.document().find_path("intra_node.bandwidth");
    if (line)
      draft.set("intra_node.efficiency",
                fmt::format("{:.4g}", std::min(1.0, fit.bytes_per_s / line->as_quantity(config::Dimension::bandwidth))));
    draft.infer(fmt::format("{}: T = {:.4g} us a round + factor S / {:.4g} GB/s, {} rows within {:.1f} %", table.collective,
                            fit.alpha_s * 1e6, fit.bytes_per_s / 1e9, table.rows.size(), 100 * fit.worst_residual));
    return draft;
  }
};

const ImporterRegistry::Registration<NcclTests> nccl_tests_registration("nccl-tests");

}  // namespace
}  // namespace rehearse::sim
