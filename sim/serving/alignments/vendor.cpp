// GPUs of different vendors: a NIC reads and writes the memory of its own vendor's alone, so that caches go through the memory of both
// hosts (arXiv 2509.17542).
#include <fmt/format.h>

#include "sim/serving/kv_alignment.hpp"

namespace rehearse::sim {
namespace {

class Vendor final : public KvAlignment {
 public:
  [[nodiscard]] std::vector<KvAlignmentWork> ways(const KvSide& sender, const KvSide& receiver) const override {
    if (sender.gpu->vendor == receiver.gpu->vendor) return {};
    return {{.reason = fmt::format("from {} to {} it goes through the memory of both hosts", sender.gpu->vendor, receiver.gpu->vendor),
             .staged = true}};
  }
};

const KvAlignmentRegistry::Registration<Vendor> vendor_registration("vendor");

}  // namespace
}  // namespace rehearse::sim
