// The free blocks of a pool in the order in which the caching allocator looks for one: by stream, size and address.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <vector>

#include "sim/memory/allocator_block.hpp"

namespace rehearse::sim::allocator {

// c10/cuda/CUDACachingAllocator.cpp: kMinBlockSize.
constexpr std::uint64_t smallest_block = 512;

// Free blocks of one stream and size, by address. Sizes come again and again, so a block is found by its size's list and the bitmap of
// lists that are not empty. Lists are short, and what is freed last lies lowest more often than not.
struct SizeList {
  int stream;
  std::uint64_t bytes;
  std::uint32_t word = 0, bit = 0;  // of the bitmap
  Block* lowest = nullptr;

  void insert(Block* block) {
    Block *lower = nullptr, *higher = lowest;
    for (; higher != nullptr && higher->address < block->address; higher = higher->higher) lower = higher;
    block->lower = lower;
    block->higher = higher;
    (lower != nullptr ? lower->higher : lowest) = block;
    if (higher != nullptr) higher->lower = block;
  }
  void erase(Block* block) {
    (block->lower != nullptr ? block->lower->higher : lowest) = block->higher;
    if (block->higher != nullptr) block->higher->lower = block->lower;
  }
};

class FreeBlocks {
 public:
  // By the block's stream, bytes and address, which stay until it is erased.
  void insert(Block* block) {
    if (block->list == nullptr || block->list->bytes != block->bytes) block->list = &list(block->stream, block->bytes);
    SizeList& of = *block->list;
    if (of.lowest == nullptr) filled_[of.word] |= bit_of(of);
    of.insert(block);
  }
  // A block that was inserted.
  void erase(Block* block) {
    SizeList& of = *block->list;
    of.erase(block);
    if (of.lowest == nullptr) filled_[of.word] &= ~bit_of(of);
  }

  // The lowest block of the list, which is no longer in it; null: none.
  Block* take_lowest(SizeList& of) {
    Block* block = of.lowest;
    if (block == nullptr) return nullptr;
    of.lowest = block->higher;
    if (of.lowest == nullptr) {
      filled_[of.word] &= ~bit_of(of);
    } else {
      of.lowest->lower = nullptr;
    }
    return block;
  }

  // The list of the size, which stays where it is.
  [[nodiscard]] SizeList& list(int stream, std::uint64_t bytes) {
    // Fibonacci hashing; sizes are multiples of 512.
    SizeList*& recent = recent_[(bytes / smallest_block + static_cast<std::uint64_t>(stream)) * 0x9E3779B97F4A7C15U >> 56U];
    if (recent == nullptr || recent->bytes != bytes || recent->stream != stream) recent = &found_or_made(stream, bytes);
    return *recent;
  }
  // The smallest block of the list's stream with at least its size, among equal ones the lowest; null: none.
  [[nodiscard]] Block* first(const SizeList& at_least) const {
    return at_least.lowest != nullptr ? at_least.lowest : lowest_after(at_least);
  }
  [[nodiscard]] Block* first(int stream, std::uint64_t bytes) { return first(list(stream, bytes)); }
  // The next one of the same stream in order; null: none.
  [[nodiscard]] Block* after(const Block* block) const { return block->higher != nullptr ? block->higher : lowest_after(*block->list); }
  // All in order.
  [[nodiscard]] std::vector<Block*> all() const;

 private:
  // Lists in order, as many as a word of the bitmap has bits; a full one becomes two. So a new size moves few others, however many there
  // are: what routed experts get is of another size in every layer.
  using Word = std::vector<std::unique_ptr<SizeList>>;
  static constexpr std::size_t word_bits = 64;
  static std::uint64_t bit_of(const SizeList& list) { return std::uint64_t{1} << list.bit; }

  [[nodiscard]] SizeList& found_or_made(int stream, std::uint64_t bytes);
  void split(std::size_t word);
  void number(std::size_t word);  // its lists, and its bits
  [[nodiscard]] Block* lowest_after(const SizeList& list) const {
    std::size_t word = list.word;
    std::uint64_t bits = filled_[word] & ~(2 * bit_of(list) - 1);
    while (bits == 0) {
      if (++word == filled_.size()) return nullptr;
      bits = filled_[word];
    }
    const SizeList& found = *words_[word][static_cast<std::size_t>(std::countr_zero(bits))];
    return found.stream == list.stream ? found.lowest : nullptr;
  }

  std::vector<Word> words_;              // lists by stream and bytes; they stay when empty
  std::vector<std::uint64_t> filled_;    // [word] a bit per list that is not empty
  std::array<SizeList*, 256> recent_{};  // by a hash of the size
};

}  // namespace rehearse::sim::allocator
