// Heads outside tokens on one side, tokens outside heads on the other: a kernel transposes. Latent states have no heads.
#include <fmt/format.h>

#include "sim/serving/kv_alignment.hpp"
#include "workloads/serving/kv_layout.hpp"

namespace rehearse::sim {
namespace {

class Layout final : public KvAlignment {
 public:
  [[nodiscard]] std::vector<KvAlignmentWork> ways(const KvSide& sender, const KvSide& receiver) const override {
    if (sender.plan->model.mla || sender.habits->layout == receiver.habits->layout) return {};
    return rewrites(sender, receiver,
                    fmt::format("pages of {} are made pages of {}", layout_names().of(sender.habits->layout),
                                layout_names().of(receiver.habits->layout)));
  }
};

const KvAlignmentRegistry::Registration<Layout> layout_registration("layout");

}  // namespace
}  // namespace rehearse::sim
