#include "workloads/serving/prompt_blocks.hpp"

namespace rehearse::workloads {

void PromptBlocks::add(std::span<const std::uint64_t> hashes) {
  std::uint64_t before = 0;  // none; else the block's number and 1
  for (const std::uint64_t hash : hashes) {
    const BlockId block = known_.try_emplace({before, hash}, static_cast<BlockId>(known_.size())).first->second;
    blocks_.push_back(block);
    before = std::uint64_t{block} + 1;
  }
  ends_.push_back(blocks_.size());
}

std::span<const BlockId> PromptBlocks::of(std::size_t prompt) const {
  const std::size_t first = prompt == 0 ? 0 : ends_[prompt - 1];
  return std::span(blocks_).subspan(first, ends_[prompt] - first);
}

}  // namespace rehearse::workloads
