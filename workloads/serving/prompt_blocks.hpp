// The prompts of a trace as blocks that are known by their tokens and all before them: prompts that begin alike begin with the same blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

namespace rehearse::workloads {

using BlockId = std::uint32_t;

class PromptBlocks {
 public:
  static constexpr int usual_tokens = 512;  // of a block, as Mooncake's traces have them
  explicit PromptBlocks(int block_tokens = usual_tokens) : tokens_(block_tokens) {}
  [[nodiscard]] int tokens() const { return tokens_; }  // of a block

  // The next prompt, by the hashes of its whole blocks. A hash behind other ones is another block.
  void add(std::span<const std::uint64_t> hashes);
  // The blocks of a prompt, in the order in which they were added.
  [[nodiscard]] std::span<const BlockId> of(std::size_t prompt) const;
  [[nodiscard]] std::size_t prompts() const { return ends_.size(); }

 private:
  int tokens_;
  std::vector<BlockId> blocks_;
  std::vector<std::size_t> ends_;                                     // [prompt] in blocks_
  std::map<std::pair<std::uint64_t, std::uint64_t>, BlockId> known_;  // by the block before it, if any, and its hash
};

}  // namespace rehearse::workloads
