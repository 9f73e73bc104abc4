// Blocks of prompts that stay in an instance's cache for those that begin alike. Blocks that requests use are counted once for all of them;
// the others stay until their pages are needed: of them goes first what was used longest ago, of one prompt its end before its beginning.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <unordered_map>

#include "sim/serving/request_state.hpp"
#include "workloads/serving/prompt_blocks.hpp"

namespace rehearse::sim {

using PromptPrefix = std::span<const workloads::BlockId>;

class PrefixCache {
 public:
  explicit PrefixCache(std::int64_t block_pages) : block_pages_(block_pages) {}

  // Of the leading blocks those that are here; and pages of those among them that somebody uses.
  [[nodiscard]] std::int64_t found(PromptPrefix prompt) const;
  [[nodiscard]] std::int64_t pages_in_use(PromptPrefix prompt) const;

  // A request uses those leading blocks that are here. Pages that it need not take, since others use them.
  std::int64_t hold(RequestId id, PromptPrefix prompt);
  // So many of its leading blocks are here by now. Pages that it gives back, since others had the same blocks computed meanwhile.
  std::int64_t add(RequestId id, PromptPrefix prompt, std::int64_t blocks);
  // It uses none any more. Pages of those that others use still.
  std::int64_t drop(RequestId id, PromptPrefix prompt);
  // Blocks that nobody uses go until the others have room in so many pages.
  void keep_within(std::int64_t pages);

 private:
  struct Block {
    int users = 0;
    std::uint64_t used = 0;  // its place in idle_
  };
  [[nodiscard]] bool use(workloads::BlockId block);

  std::int64_t block_pages_;
  std::unordered_map<workloads::BlockId, Block> blocks_;
  std::unordered_map<RequestId, std::int64_t> held_;  // leading blocks
  std::map<std::uint64_t, workloads::BlockId> idle_;  // used by nobody, longest ago first
  std::uint64_t drops_ = 0;
};

}  // namespace rehearse::sim
