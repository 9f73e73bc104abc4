// The free blocks of a pool in the order in which the caching allocator looks for one: by stream, size and address.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

namespace rehearse::sim::allocator {

struct Block;

// Free blocks of one stream and size. Their sizes are few and come again and again, so a block is found by its size's list and the bitmap
// of lists that are not empty.
struct SizeList {
  struct Entry {
    std::uint64_t address;
    Block* block;
  };
  int stream;
  std::uint64_t bytes;
  std::size_t rank;            // among the lists
  std::vector<Entry> entries;  // the lowest address last
};

class FreeBlocks {
 public:
  // By the block's stream, bytes and address, which stay until it is erased.
  void insert(Block* block);
  // A block that was inserted.
  void erase(Block* block);
  // The smallest block of the stream with at least so many bytes, among equal ones the lowest; null: none.
  [[nodiscard]] Block* first(int stream, std::uint64_t bytes);
  // The next one of the same stream in order; null: none.
  [[nodiscard]] Block* after(const Block* block) const;
  // All in order.
  [[nodiscard]] std::vector<Block*> all() const;

 private:
  [[nodiscard]] SizeList& list(int stream, std::uint64_t bytes);
  [[nodiscard]] SizeList& found_or_made(int stream, std::uint64_t bytes);
  [[nodiscard]] Block* lowest(std::size_t from_rank, int stream) const;

  std::vector<std::unique_ptr<SizeList>> lists_;  // by stream and bytes; they stay when empty
  std::vector<std::uint64_t> filled_;             // a bit per list
  std::array<SizeList*, 256> recent_{};           // by a hash of the size
};

}  // namespace rehearse::sim::allocator
