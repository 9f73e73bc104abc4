// What the caching allocator is asked for (caching_allocator.hpp).
#pragma once

#include <cstdint>

#include "sim/memory/allocator_blocks.hpp"

namespace rehearse::sim::allocator {

struct Request {
  std::uint64_t asked, bytes;  // as asked for; rounded
  int stream;
  Pool* pool;
  SizeList* list;         // of the pool, for blocks of these bytes
  std::uint64_t used_by;  // other streams: a bit each

  // What to look for among address space: of this size or larger.
  [[nodiscard]] Block key() const {
    Block block;
    block.stream = stream;
    block.bytes = bytes;
    block.pool = pool;
    return block;
  }
  // get_allocation_size
  [[nodiscard]] std::uint64_t segment_bytes() const {
    if (bytes <= largest_small) return small_segment;
    if (bytes < least_own_segment) return large_segment;
    return (bytes + large_step - 1) / large_step * large_step;
  }
};

}  // namespace rehearse::sim::allocator
