// A block of the caching allocator (caching_allocator.hpp).
#pragma once

#include <cstdint>

namespace rehearse::sim::allocator {

struct ExpandableSegment;
struct Pool;
struct SizeList;

// A piece of a segment: in use, free, or (in expandable segments) address space without memory.
struct Block {
  std::uint64_t bytes = 0, address = 0;
  Block *before = nullptr, *after = nullptr;  // its neighbours in the segment
  SizeList* list = nullptr;                   // where it is while it is free; otherwise where it was or will be, if its size stays
  Block *lower = nullptr, *higher = nullptr;  // its neighbours there, by address
  std::uint64_t asked = 0;                    // of `bytes`
  Pool* pool = nullptr;
  ExpandableSegment* segment = nullptr;  // null: from cudaMalloc
  int stream = 0;
  int waits_for = 0;             // how many other streams, once freed
  std::uint64_t used_by = 0;     // other streams, while allocated: a bit each
  std::uint64_t free_since = 0;  // searches of its pool before it became free
  bool busy = false;             // allocated, or freed and waiting
  bool mapped = true;            // there is memory behind its addresses

  [[nodiscard]] bool is_split() const { return before != nullptr || after != nullptr; }
};

}  // namespace rehearse::sim::allocator
