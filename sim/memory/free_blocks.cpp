#include "sim/memory/free_blocks.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace rehearse::sim::allocator {

SizeList& FreeBlocks::found_or_made(int stream, std::uint64_t bytes) {
  const auto key = [](const std::unique_ptr<SizeList>& list) { return std::pair{list->stream, list->bytes}; };
  const std::pair wanted{stream, bytes};
  if (words_.empty()) {
    words_.emplace_back();
    filled_.push_back(0);
  }
  // The last word that begins no later, or the first.
  const auto later =
      std::ranges::upper_bound(words_.begin() + 1, words_.end(), wanted, {}, [&](const Word& word) { return key(word.front()); });
  auto word = static_cast<std::size_t>(later - words_.begin()) - 1;
  auto at = std::ranges::lower_bound(words_[word], wanted, {}, key);
  if (at != words_[word].end() && key(*at) == wanted) return **at;
  if (words_[word].size() == word_bits) {
    split(word);
    if (wanted > key(words_[word + 1].front())) ++word;
    at = std::ranges::lower_bound(words_[word], wanted, {}, key);
  }
  SizeList& made = **words_[word].insert(at, std::make_unique<SizeList>(SizeList{stream, bytes}));
  number(word);
  return made;
}

void FreeBlocks::split(std::size_t word) {
  const auto next = words_.emplace(words_.begin() + static_cast<std::ptrdiff_t>(word) + 1);
  Word& full = words_[word];
  const auto half = full.begin() + word_bits / 2;
  next->assign(std::make_move_iterator(half), std::make_move_iterator(full.end()));
  full.erase(half, full.end());
  filled_.resize(words_.size());
  for (std::size_t w = word; w < words_.size(); ++w) number(w);
}

void FreeBlocks::number(std::size_t word) {
  filled_[word] = 0;
  std::uint32_t bit = 0;
  for (const std::unique_ptr<SizeList>& list : words_[word]) {
    list->word = static_cast<std::uint32_t>(word);
    list->bit = bit++;
    if (list->lowest != nullptr) filled_[word] |= bit_of(*list);
  }
}

std::vector<Block*> FreeBlocks::all() const {
  std::vector<Block*> blocks;
  for (const Word& word : words_) {
    for (const std::unique_ptr<SizeList>& list : word) {
      for (Block* block = list->lowest; block != nullptr; block = block->higher) blocks.push_back(block);
    }
  }
  return blocks;
}

}  // namespace rehearse::sim::allocator
