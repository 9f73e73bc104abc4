#include "sim/memory/caching_allocator.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "sim/memory/allocator_request.hpp"

namespace rehearse::sim {

using namespace allocator;

CachingAllocator::CachingAllocator(std::uint64_t device_bytes, AllocatorSettings settings, std::optional<double> allowed_share)
    : device_{device_bytes}, settings_(settings) {
  if (allowed_share) allowed_ = static_cast<std::uint64_t>(*allowed_share * static_cast<double>(device_bytes));
}

CachingAllocator::~CachingAllocator() = default;

std::uint64_t CachingAllocator::rounded(std::uint64_t bytes) const {
  if (bytes < smallest_block) return smallest_block;
  const std::uint64_t divisions = settings_.roundup_power2_divisions;
  if (divisions <= 1 || bytes <= smallest_block * divisions) return (bytes + smallest_block - 1) / smallest_block * smallest_block;
  if (std::has_single_bit(bytes)) return bytes;
  const std::uint64_t power = std::bit_floor(bytes);
  const std::uint64_t division = power >> (std::bit_width(divisions) - 1u);
  return division == 0 ? 2 * power : (bytes + division - 1) / division * division;
}

Pool& CachingAllocator::pool_of(std::uint64_t bytes) { return bytes <= largest_small ? small_ : large_; }

bool CachingAllocator::splits(const Block& block, std::uint64_t bytes) const {
  const std::uint64_t left = block.bytes - bytes;
  if (block.pool->small || settings_.expandable_segments) return left >= smallest_block;
  return bytes < settings_.max_split_bytes && left > largest_small;
}

CachingAllocator::Block* CachingAllocator::make(int stream, std::uint64_t bytes, std::uint64_t address, Pool* pool) {
  Block* block = nullptr;
  if (spare_.empty()) {
    block = &blocks_.emplace_back();
  } else {
    block = spare_.back();
    spare_.pop_back();
    std::vector<int> room = std::move(block->used_by);  // empty, with its memory
    *block = Block{};
    block->used_by = std::move(room);
  }
  block->stream = stream;
  block->bytes = bytes;
  block->address = address;
  block->pool = pool;
  return block;
}

void CachingAllocator::discard(Block* block) { spare_.push_back(block); }

CachingAllocator::Block* CachingAllocator::allocate(std::uint64_t bytes, int stream) {
  free_what_streams_finished();
  const std::uint64_t size = rounded(bytes);
  const Request request{size, stream, &pool_of(size)};
  Block* block = cached(request);
  if (block == nullptr) {
    if (collects_garbage()) collect_garbage();
    block = from_device(request);
    if (block == nullptr && release_oversize(request)) block = from_device(request);
    if (block == nullptr) {
      release_cached();
      ++state_.retries;
      block = from_device(request);
    }
  }
  if (block != nullptr) return hand_out(block, request, bytes);
  ++state_.out_of_memory;
  return nullptr;
}

CachingAllocator::Block* CachingAllocator::cached(const Request& request) {
  Pool& pool = *request.pool;
  if (collects_garbage()) ++pool.searches;
  Block* block = pool.free.first(request.stream, request.bytes);
  if (block == nullptr) return nullptr;
  // A block that can grow is as large as it can become.
  const auto reach = [](const Block* b) { return b->bytes + (b->after != nullptr && !b->after->mapped ? b->after->bytes : 0); };
  while (block->segment != nullptr) {
    Block* next = pool.free.after(block);
    if (next == nullptr || reach(next) >= reach(block)) break;
    block = next;
  }
  if (request.bytes < settings_.max_split_bytes) {
    if (block->bytes >= settings_.max_split_bytes) return nullptr;
  } else if (block->bytes >= request.bytes + settings_.max_non_split_rounding_bytes) {
    return nullptr;
  }
  pool.free.erase(block);
  return block;
}

CachingAllocator::Block* CachingAllocator::from_device(const Request& request) {
  const std::uint64_t bytes = request.segment_bytes();
  if (allowed_ && state_.reserved + bytes > *allowed_) return nullptr;
  if (settings_.expandable_segments) return expandable(request);
  if (!device_.take(bytes)) return nullptr;
  state_.reserved += bytes;
  ++state_.segments;
  return make(request.stream, bytes, device_.addresses(bytes), request.pool);
}

CachingAllocator::Block* CachingAllocator::hand_out(Block* block, const Request& request, std::uint64_t asked) {
  const bool was_split = block->is_split();
  if (splits(*block, request.bytes)) {
    block = split(block, request, was_split);
  } else if (was_split && block->segment == nullptr) {
    state_.inactive_split -= block->bytes;
  }
  block->allocated = true;
  block->asked = asked;
  state_.allocated += block->bytes;
  state_.requested += asked;
  return block;
}

// The front of the block; the rest stays free.
CachingAllocator::Block* CachingAllocator::split(Block* block, const Request& request, bool was_split) {
  Block* rest = block;
  Block* front = cut(*rest, rest->address, request.bytes, rest->before, rest);
  rest->address += request.bytes;
  rest->bytes -= request.bytes;
  rest->pool->insert(rest);
  if (rest->segment != nullptr) return front;
  if (was_split) {
    state_.inactive_split -= front->bytes;
  } else {
    state_.inactive_split += rest->bytes;
  }
  return front;
}

// A free block of the same segment between two others.
CachingAllocator::Block* CachingAllocator::cut(const Block& of, std::uint64_t address, std::uint64_t bytes, Block* before, Block* after) {
  Block* made = make(of.stream, bytes, address, of.pool);
  made->segment = of.segment;
  made->before = before;
  made->after = after;
  if (before != nullptr) before->after = made;
  if (after != nullptr) after->before = made;
  return made;
}

void CachingAllocator::free(Block* block) {
  block->allocated = false;
  state_.allocated -= block->bytes;
  if (block->used_by.empty()) {
    put_back(block);
  } else {
    wait_for_streams(block);
  }
}

void CachingAllocator::put_back(Block* block) {
  state_.requested -= block->asked;
  const bool counted = block->segment == nullptr;
  for (Block* neighbour : {block->before, block->after}) {
    if (neighbour == nullptr || !neighbour->idle()) continue;
    const std::uint64_t merged = merge(block, neighbour);
    if (counted) state_.inactive_split -= merged;
  }
  block->pool->insert(block);
  if (counted && block->is_split()) state_.inactive_split += block->bytes;
}

// Bytes of the neighbour, which is no more; 0 where it stays.
std::uint64_t CachingAllocator::merge(Block* block, Block* neighbour) {
  if (neighbour == nullptr || !neighbour->idle() || neighbour->mapped != block->mapped) return 0;
  if (block->before == neighbour) {
    block->address = neighbour->address;
    block->before = neighbour->before;
    if (block->before != nullptr) block->before->after = block;
  } else {
    block->after = neighbour->after;
    if (block->after != nullptr) block->after->before = block;
  }
  const std::uint64_t merged = neighbour->bytes;
  if (neighbour->mapped) {
    block->pool->free.erase(neighbour);
  } else {
    block->pool->unmapped.erase(neighbour);
  }
  block->bytes += merged;
  discard(neighbour);
  return merged;
}

}  // namespace rehearse::sim
