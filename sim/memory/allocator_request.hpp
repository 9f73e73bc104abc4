#pragma once

#include "sim/memory/caching_allocator.hpp"

namespace rehearse::sim {

struct CachingAllocator::Request {
  std::uint64_t bytes;  // rounded
  int stream;
  allocator::Pool* pool;

  // What to look for among blocks: of this size or larger.
  [[nodiscard]] Block key() const {
    Block block;
    block.stream = stream;
    block.bytes = bytes;
    block.pool = pool;
    return block;
  }
  // get_allocation_size
  [[nodiscard]] std::uint64_t segment_bytes() const {
    if (bytes <= allocator::largest_small) return allocator::small_segment;
    if (bytes < allocator::least_own_segment) return allocator::large_segment;
    return (bytes + allocator::large_step - 1) / allocator::large_step * allocator::large_step;
  }
};

}  // namespace rehearse::sim
