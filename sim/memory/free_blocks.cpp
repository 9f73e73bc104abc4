#include "sim/memory/free_blocks.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "sim/memory/allocator_blocks.hpp"

namespace rehearse::sim::allocator {
namespace {

constexpr std::size_t word_bits = 64;

std::uint64_t bit_of(std::size_t rank) { return std::uint64_t{1} << (rank % word_bits); }

// Where the address is or belongs.
auto place_of(std::vector<SizeList::Entry>& entries, std::uint64_t address) {
  std::size_t before = 0;
  for (std::size_t left = entries.size(); left > 0;) {  // a search without branches
    const std::size_t half = (left + 1) / 2;
    before += entries[before + half - 1].address > address ? half : 0;
    left -= half;
  }
  return entries.begin() + static_cast<std::ptrdiff_t>(before);
}

}  // namespace

SizeList& FreeBlocks::list(int stream, std::uint64_t bytes) {
  // Fibonacci hashing; sizes are multiples of 512.
  SizeList*& recent = recent_[(bytes / smallest_block + static_cast<std::uint64_t>(stream)) * 0x9E3779B97F4A7C15U >> 56U];
  if (recent == nullptr || recent->bytes != bytes || recent->stream != stream) recent = &found_or_made(stream, bytes);
  return *recent;
}

SizeList& FreeBlocks::found_or_made(int stream, std::uint64_t bytes) {
  const auto key = [](const std::unique_ptr<SizeList>& list) { return std::pair{list->stream, list->bytes}; };
  const auto at = std::ranges::lower_bound(lists_, std::pair{stream, bytes}, {}, key);
  if (at != lists_.end() && key(*at) == std::pair{stream, bytes}) return **at;
  SizeList& made = **lists_.insert(at, std::make_unique<SizeList>(SizeList{stream, bytes, 0, {}}));
  filled_.assign(lists_.size() / word_bits + 1, 0);
  for (std::size_t rank = 0; rank < lists_.size(); ++rank) {
    lists_[rank]->rank = rank;
    if (!lists_[rank]->entries.empty()) filled_[rank / word_bits] |= bit_of(rank);
  }
  return made;
}

void FreeBlocks::insert(Block* block) {
  SizeList& of = list(block->stream, block->bytes);
  block->listed = &of;
  if (of.entries.empty()) filled_[of.rank / word_bits] |= bit_of(of.rank);
  of.entries.insert(place_of(of.entries, block->address), {block->address, block});
}

void FreeBlocks::erase(Block* block) {
  SizeList& of = *std::exchange(block->listed, nullptr);
  of.entries.erase(place_of(of.entries, block->address));
  if (of.entries.empty()) filled_[of.rank / word_bits] &= ~bit_of(of.rank);
}

Block* FreeBlocks::lowest(std::size_t from_rank, int stream) const {
  std::size_t word = from_rank / word_bits;
  if (word >= filled_.size()) return nullptr;
  std::uint64_t bits = filled_[word] & ~(bit_of(from_rank) - 1);
  while (bits == 0) {
    if (++word == filled_.size()) return nullptr;
    bits = filled_[word];
  }
  const SizeList& found = *lists_[word * word_bits + static_cast<std::size_t>(std::countr_zero(bits))];
  return found.stream == stream ? found.entries.back().block : nullptr;
}

Block* FreeBlocks::first(int stream, std::uint64_t bytes) { return lowest(list(stream, bytes).rank, stream); }

Block* FreeBlocks::after(const Block* block) const {
  std::vector<SizeList::Entry>& entries = block->listed->entries;
  const auto at = place_of(entries, block->address);
  return at != entries.begin() ? std::prev(at)->block : lowest(block->listed->rank + 1, block->stream);
}

std::vector<Block*> FreeBlocks::all() const {
  std::vector<Block*> blocks;
  for (const auto& list : lists_) {
    for (auto entry = list->entries.rbegin(); entry != list->entries.rend(); ++entry) blocks.push_back(entry->block);
  }
  return blocks;
}

}  // namespace rehearse::sim::allocator
