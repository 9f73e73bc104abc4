// What the allocator gives back to the device, when it wants to keep less or cannot get more.
#include <algorithm>

#include "sim/memory/allocator_request.hpp"

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
  for (auto& [stream, uses] : streams_) finish(stream);
  free_what_streams_finished();
  release(large_);
  release(small_);
}

void CachingAllocator::release(Pool& pool) {
  std::vector<Block*> expandable;
  for (auto at = pool.free.begin(); at != pool.free.end();) {
    Block* block = *at++;
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
  for (const Block* block : large_.free) {
    if (block->is_split()) continue;
    ages += large_.age(*block);
    ++count;
  }
  for (bool any = true; any && reclaimed < target && count > 0;) {
    const double old = static_cast<double>(ages) / static_cast<double>(count);
    any = false;
    for (auto at = large_.free.begin(); at != large_.free.end();) {
      Block* block = *at++;
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
  Block key = request.key();
  key.bytes = std::max(key.bytes, settings_.max_split_bytes);
  auto found = pool.free.lower_bound(&key);
  if (found != pool.free.end() && (*found)->stream == request.stream && (*found)->segment == nullptr) {
    release(*found);
    return true;
  }
  std::uint64_t released = 0;
  while (found != pool.free.begin() && released < key.bytes) {
    Block* block = *std::prev(found);
    if (block->bytes < settings_.max_split_bytes || block->stream != request.stream) break;
    if (block->segment != nullptr) {
      --found;
      continue;
    }
    released += block->bytes;
    release(block);
  }
  return released >= key.bytes;
}

}  // namespace rehearse::sim
