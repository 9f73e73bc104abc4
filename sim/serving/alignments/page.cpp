// Pages of different size. Tokens outside heads: one a multiple of the other is arithmetic of addresses. Otherwise a kernel regroups at the
// receiver.
#include <fmt/format.h>

#include "sim/serving/kv_alignment.hpp"
#include "workloads/serving/kv_layout.hpp"

namespace rehearse::sim {
namespace {

class Page final : public KvAlignment {
 public:
  [[nodiscard]] std::optional<KvAlignmentWork> work(const KvSide& sender, const KvSide& receiver) const override {
    const int from = sender.habits->page, to = receiver.habits->page;
    if (from == to) return std::nullopt;
    const bool multiple = from % to == 0 || to % from == 0;
    if (multiple && sender.habits->layout == KvLayout::token_major) return std::nullopt;
    return KvAlignmentWork{0, 2 * receiver.bytes_per_token, fmt::format("pages of {} tokens are made pages of {}", from, to)};
  }
};

const KvAlignmentRegistry::Registration<Page> page_registration("page");

}  // namespace
}  // namespace rehearse::sim
