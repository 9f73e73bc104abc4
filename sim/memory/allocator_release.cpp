// What the allocator gives back to the device, when it wants to keep less or cannot get more.
#include <algorithm>
#include <vector>

#include "sim/memory/caching_allocator.hpp"

namespace rehearse::sim {

using allocator::Pool;

void CachingAllocator::release(Block* block) {
  device_.taken -= block->bytes;
  state_.reserved -= block->bytes;
  --state_.segments;
  block->pool->free.erase(block);
  discard(block);
}

void CachingAllocator::empty_cache() { release_cached(); }

void CachingAllocator::release_cached() {
  for (const StreamUses& uses : streams_) finish(uses.stream);
  free_what_streams_finished();
  release(large_);
  release(small_);
}

void CachingAllocator::release(Pool& pool) {
  std::vector<Block*> expandable;
  for (Block* block : pool.free.all()) {
    if (block->segment != nullptr) {
      expandable.push_back(block);
    } else if (!block->is_split()) {
      release(block);
    }
  }
  for (Block* block : expandable) unmap(block);
}

// Segments older than the mean are given back, again and again until the threshold is kept.
void CachingAllocator::collect_garbage() {
  const auto threshold = static_cast<std::uint64_t>(settings_.garbage_collection_threshold * static_cast<double>(*allowed_));
  if (state_.reserved <= threshold) return;
  const std::uint64_t target = state_.reserved - threshold;
  std::uint64_t ages = 0, count = 0, reclaimed = 0;
  for (const Block* block : large_.free.all()) {
    if (block->is_split()) continue;
    ages += large_.age(*block);
    ++count;
  }
  for (bool any = true; any && reclaimed < target && count > 0;) {
    const double old = static_cast<double>(ages) / static_cast<double>(count);
    any = false;
    for (Block* block : large_.free.all()) {
      if (block->is_split() || block->segment != nullptr || static_cast<double>(large_.age(*block)) < old) continue;
      any = true;
      reclaimed += block->bytes;
      ages -= large_.age(*block);
      --count;
      release(block);
    }
  }
}

// One free block that is large enough, or several oversize ones, the largest first. False: that cannot help.
bool CachingAllocator::release_oversize(const Request& request) {
  if (settings_.max_split_bytes == UINT64_MAX) return false;
  Pool& pool = *request.pool;
  const std::uint64_t wanted = std::max(request.bytes, settings_.max_split_bytes);
  Block* enough = pool.free.first(request.stream, wanted);
  if (enough != nullptr && enough->segment == nullptr) {
    release(enough);
    return true;
  }
  std::uint64_t released = 0;
  const std::vector<Block*> all = pool.free.all();
  for (auto it = all.rbegin(); it != all.rend() && released < wanted; ++it) {
    Block* const block = *it;
    const bool oversize = block->bytes >= settings_.max_split_bytes && block->bytes < wanted;
    if (!oversize || block->stream != request.stream || block->segment != nullptr) continue;
    released += block->bytes;
    release(block);
  }
  return released >= wanted;
}

}  // namespace rehearse::sim
