// Pools and segments of the caching allocator (caching_allocator.hpp), and the device they come from.
#pragma once

#include <cstdint>
#include <set>
#include <tuple>

#include "sim/memory/free_blocks.hpp"

namespace rehearse::sim::allocator {

// c10/cuda/CUDACachingAllocator.cpp: kSmallSize, kSmallBuffer, kMinLargeAlloc, kLargeBuffer, kRoundLarge.
constexpr std::uint64_t largest_small = 1u << 20u;
constexpr std::uint64_t small_segment = 2u << 20u;
constexpr std::uint64_t least_own_segment = 10u << 20u;
constexpr std::uint64_t large_segment = 20u << 20u;
constexpr std::uint64_t large_step = 2u << 20u;

struct ByAddress {
  bool operator()(const Block* a, const Block* b) const { return std::tie(a->stream, a->address) < std::tie(b->stream, b->address); }
};

struct Pool {
  bool small = false;
  FreeBlocks free{};
  std::set<Block*, ByAddress> unmapped{};
  std::uint64_t searches = 0;

  void insert(Block* block) {
    block->free_since = searches;
    free.insert(block);
  }
  // How many searches a free block was passed over in.
  [[nodiscard]] std::uint64_t age(const Block& block) const { return searches - block.free_since; }
};

// Memory as a budget, and addresses that are never used twice.
struct Device {
  std::uint64_t bytes = 0, taken = 0, next_address = std::uint64_t{1} << 40u;

  bool take(std::uint64_t wanted) {
    if (wanted > bytes - taken) return false;
    taken += wanted;
    return true;
  }
  std::uint64_t addresses(std::uint64_t wanted) {
    const std::uint64_t first = next_address;
    next_address += (wanted + large_step - 1) / large_step * large_step;
    return first;
  }
};

// Addresses for more than the whole device, of which pages get memory as they are needed.
struct ExpandableSegment {
  std::uint64_t address = 0, page = 0, pages = 0;

  [[nodiscard]] std::uint64_t bytes() const { return page * pages; }
  [[nodiscard]] std::uint64_t page_down(std::uint64_t at) const { return address + (at - address) / page * page; }
  [[nodiscard]] std::uint64_t page_up(std::uint64_t at) const { return address + (at - address + page - 1) / page * page; }
};

}  // namespace rehearse::sim::allocator
