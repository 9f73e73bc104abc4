// Heads cut otherwise. Heads outside tokens: a page of a head lies together, and descriptors do. Tokens outside heads: packed before
// sending.
#include <fmt/format.h>

#include "sim/serving/kv_alignment.hpp"
#include "workloads/serving/kv_layout.hpp"

namespace rehearse::sim {
namespace {

class TensorParallel final : public KvAlignment {
 public:
  [[nodiscard]] std::vector<KvAlignmentWork> ways(const KvSide& sender, const KvSide& receiver) const override {
    if (workloads::cut_alike(*sender.plan, *receiver.plan) || sender.habits->layout == KvLayout::head_major) return {};
    return rewrites(sender, receiver, fmt::format("heads of tp {} are packed for tp {}", sender.plan->tp, receiver.plan->tp));
  }
};

const KvAlignmentRegistry::Registration<TensorParallel> tensor_parallel_registration("tensor-parallel");

}  // namespace
}  // namespace rehearse::sim
