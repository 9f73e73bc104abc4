// Expandable segments: one range of addresses per pool and stream, which gets and loses memory by pages.
#include <algorithm>

#include "sim/memory/caching_allocator.hpp"

namespace rehearse::sim {

using allocator::ExpandableSegment;
using allocator::Pool;

// The lowest address space that is not in use and has room, together with the free block before it; a new segment otherwise
// (find_expandable_block).
CachingAllocator::Block* CachingAllocator::expand(const Request& request) {
  Pool& pool = *request.pool;
  const auto room = [&](const Block* block) {
    std::uint64_t bytes = 0;
    for (; bytes < request.bytes && block != nullptr && !block->busy; block = block->after) bytes += block->bytes;
    return bytes >= request.bytes;
  };
  Block key = request.key();
  for (auto at = pool.unmapped.lower_bound(&key); at != pool.unmapped.end() && (*at)->stream == request.stream; ++at) {
    Block* block = *at;
    if (block->before != nullptr && !block->before->busy) block = block->before;
    if (room(block)) return block;
  }
  const std::uint64_t page = pool.small ? allocator::small_segment : allocator::large_segment;
  // Room for pages that move when others in the middle were given back.
  const std::uint64_t pages = (device_.bytes + device_.bytes / 8 + page - 1) / page;
  expandable_.push_back(std::make_unique<ExpandableSegment>(ExpandableSegment{device_.addresses(page * pages), page, pages}));
  ExpandableSegment* segment = expandable_.back().get();
  Block* block = make({.bytes = segment->bytes(),
                       .address = segment->address,
                       .pool = &pool,
                       .segment = segment,
                       .stream = request.stream,
                       .mapped = false});
  pool.unmapped.insert(block);
  return block;
}

// try_allocate_expandable_block
CachingAllocator::Block* CachingAllocator::expandable(const Request& request) {
  Block* block = expand(request);
  if (!block->mapped && !map(block, std::min(block->bytes, request.bytes))) return nullptr;
  while (block->bytes < request.bytes) {
    Block* next = block->after;
    if (!map(next, std::min(request.bytes - block->bytes, next->bytes))) return nullptr;
    block = next;  // now with what was before it
  }
  request.pool->free.erase(block);
  return block;
}

bool CachingAllocator::map(Block* block, std::uint64_t bytes) {
  Pool& pool = *block->pool;
  const std::uint64_t end = block->segment->page_up(block->address + bytes);
  const std::uint64_t mapped = end - block->address;
  if (!device_.take(mapped)) return false;
  pool.unmapped.erase(block);
  if (mapped < block->bytes) {
    Block* rest = cut(*block, end, block->bytes - mapped, block, block->after);
    rest->mapped = false;
    pool.unmapped.insert(rest);
    block->bytes = mapped;
  }
  block->mapped = true;
  if (merges(*block, block->before)) merge(block, block->before);
  if (merges(*block, block->after)) merge(block, block->after);
  pool.insert(block);
  state_.reserved += mapped;
  taken_ += mapped;
  return true;
}

// The whole pages of a free block.
void CachingAllocator::unmap(Block* block) {
  Pool& pool = *block->pool;
  const std::uint64_t first = block->segment->page_up(block->address), end = block->segment->page_down(block->address + block->bytes);
  if (first >= end) return;
  pool.free.erase(block);
  finish(block->stream);  // the allocator waits for it
  const std::uint64_t left = first - block->address, right = block->address + block->bytes - end;
  if (left > 0) pool.insert(cut(*block, block->address, left, block->before, block));
  if (right > 0) pool.insert(cut(*block, end, right, block, block->after));
  block->address = first;
  block->bytes = end - first;
  block->mapped = false;
  device_.taken -= block->bytes;
  state_.reserved -= block->bytes;
  if (merges(*block, block->before)) merge(block, block->before);
  if (merges(*block, block->after)) merge(block, block->after);
  pool.unmapped.insert(block);
  if (block->is_split()) return;
  pool.unmapped.erase(block);  // nothing of the segment is left
  std::erase_if(expandable_, [&](const auto& segment) { return segment.get() == block->segment; });
  discard(block);
}

}  // namespace rehearse::sim
