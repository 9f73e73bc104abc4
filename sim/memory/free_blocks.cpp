#include "sim/memory/free_blocks.hpp"

#include <algorithm>
#include <utility>

namespace rehearse::sim::allocator {

SizeList& FreeBlocks::found_or_made(int stream, std::uint64_t bytes) {
  const auto key = [](const std::unique_ptr<SizeList>& list) { return std::pair{list->stream, list->bytes}; };
  const auto at = std::ranges::lower_bound(lists_, std::pair{stream, bytes}, {}, key);
  if (at != lists_.end() && key(*at) == std::pair{stream, bytes}) return **at;
  SizeList& made = **lists_.insert(at, std::make_unique<SizeList>(SizeList{stream, bytes, 0}));
  filled_.assign(lists_.size() / word_bits + 1, 0);
  for (std::size_t rank = 0; rank < lists_.size(); ++rank) {
    lists_[rank]->rank = rank;
    if (lists_[rank]->lowest != nullptr) filled_[rank / word_bits] |= bit_of(rank);
  }
  return made;
}

std::vector<Block*> FreeBlocks::all() const {
  std::vector<Block*> blocks;
  for (const auto& list : lists_) {
    for (Block* block = list->lowest; block != nullptr; block = block->higher) blocks.push_back(block);
  }
  return blocks;
}

}  // namespace rehearse::sim::allocator
