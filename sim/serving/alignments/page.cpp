// Pages of different size. Tokens outside heads: one a multiple of the other is arithmetic of addresses. Otherwise a kernel regroups at the
// receiver.
#include <fmt/format.h>

#include <algorithm>

#include "sim/serving/kv_alignment.hpp"
#include "workloads/serving/kv_layout.hpp"

namespace rehearse::sim {
namespace {

class Page final : public KvAlignment {
 public:
  [[nodiscard]] std::vector<KvAlignmentWork> ways(const KvSide& sender, const KvSide& receiver) const override {
    const int from = sender.page, to = receiver.page;
    if (from == to) return {};
    const bool multiple = from % to == 0 || to % from == 0;
    if (multiple && sender.habits->layout == KvLayout::token_major)
      return {{.reason = fmt::format("pages of {} tokens are found in pages of {}", std::min(from, to), std::max(from, to))}};
    std::vector<KvAlignmentWork> ways = rewrites(sender, receiver, fmt::format("pages of {} tokens are made pages of {}", from, to));
    std::erase_if(ways, [](const KvAlignmentWork& way) { return way.sender_bytes_per_token > 0; });
    return ways;
  }
};

const KvAlignmentRegistry::Registration<Page> page_registration("page");

}  // namespace
}  // namespace rehearse::sim
