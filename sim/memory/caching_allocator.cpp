#include "sim/memory/caching_allocator.hpp"

#include <algorithm>
#include <bit>

namespace rehearse::sim {

using namespace allocator;

CachingAllocator::CachingAllocator(std::uint64_t device_bytes, AllocatorSettings settings, std::optional<double> allowed_share)
    : device_{device_bytes},
      settings_(settings),
      allowed_(allowed_share ? std::optional(static_cast<std::uint64_t>(*allowed_share * static_cast<double>(device_bytes)))
                             : std::nullopt),
      collects_garbage_(allowed_ && settings_.garbage_collection_threshold > 0),
      takes_same_size_(!collects_garbage_ && !settings_.expandable_segments && settings_.max_non_split_rounding_bytes > 0) {}

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

inline bool CachingAllocator::splits(const Block& block, std::uint64_t bytes) const {
  const std::uint64_t left = block.bytes - bytes;
  if (block.pool->small || settings_.expandable_segments) return left >= smallest_block;
  return bytes < settings_.max_split_bytes && left > largest_small;
}

CachingAllocator::Block* CachingAllocator::make(const Block& as) {
  Block* block = spare_;
  if (block == nullptr) return &blocks_.emplace_back(as);
  spare_ = block->higher;
  *block = as;
  return block;
}

void CachingAllocator::discard(Block* block) {
  block->higher = spare_;
  spare_ = block;
}

AllocatorState CachingAllocator::state() const {
  AllocatorState state = state_;
  for (const Block& block : blocks_) state.requested += block.busy ? block.asked : 0;
  for (const Pool* pool : {&small_, &large_}) {
    for (const Block* block : pool->free.all()) state.inactive_split += block->segment == nullptr && block->is_split() ? block->bytes : 0;
  }
  return state;
}

std::vector<std::uint64_t> CachingAllocator::snapshot() const {
  std::vector<std::uint64_t> numbers{state_.allocated,     state_.reserved, state_.retries,
                                     state_.out_of_memory, device_.taken,   device_.next_address};
  const auto add = [&](const Block* block) { numbers.insert(numbers.end(), {block->address, block->bytes}); };
  for (const Pool* pool : {&small_, &large_}) {
    numbers.insert(numbers.end(), {pool->searches, pool->unmapped.size()});
    for (const Block* block : pool->unmapped) add(block);
    for (const Block* block : pool->free.all()) add(block);
  }
  for (const StreamUses& uses : streams_) {
    numbers.insert(numbers.end(), {uses.waiting.size(), uses.finished});
    for (const Block* block : uses.waiting) numbers.push_back(block->address);
  }
  return numbers;
}

CachingAllocator::Request CachingAllocator::request(std::uint64_t bytes, int stream) {
  const std::uint64_t size = rounded(bytes);
  Pool& pool = pool_of(size);
  return {bytes, size, stream, &pool, &pool.free.list(stream, size), 0};
}

CachingAllocator::Block* CachingAllocator::allocate(const Request& request) {
  if (any_finished_) free_what_streams_finished();
  if (takes_same_size_) {
    if (Block* block = request.pool->free.take_lowest(*request.list)) return in_use(block, request);
  }
  return allocate_other_size(request);
}

CachingAllocator::Block* CachingAllocator::allocate_other_size(const Request& request) {
  Block* block = cached(request);
  if (block == nullptr) block = not_cached(request);
  return block != nullptr ? hand_out(block, request) : nullptr;
}

CachingAllocator::Block* CachingAllocator::not_cached(const Request& request) {
  if (collects_garbage_) collect_garbage();
  Block* block = from_device(request);
  if (block == nullptr && release_oversize(request)) block = from_device(request);
  if (block == nullptr) {
    release_cached();
    ++state_.retries;
    block = from_device(request);
  }
  if (block == nullptr) ++state_.out_of_memory;
  return block;
}

inline CachingAllocator::Block* CachingAllocator::cached(const Request& request) {
  Pool& pool = *request.pool;
  if (collects_garbage_) ++pool.searches;
  Block* block = pool.free.first(*request.list);
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
  taken_ += bytes;
  ++state_.segments;
  return make({.bytes = bytes, .address = device_.addresses(bytes), .pool = request.pool, .stream = request.stream});
}

inline CachingAllocator::Block* CachingAllocator::hand_out(Block* block, const Request& request) {
  return in_use(splits(*block, request.bytes) ? split(block, request) : block, request);
}

inline CachingAllocator::Block* CachingAllocator::in_use(Block* block, const Request& request) {
  block->busy = true;
  block->asked = request.asked;
  block->used_by = request.used_by;
  state_.allocated += block->bytes;
  return block;
}

// The front of the block; the rest stays free.
inline CachingAllocator::Block* CachingAllocator::split(Block* block, const Request& request) {
  Block* front = cut(*block, block->address, request.bytes, block->before, block);
  front->list = request.list;
  block->address += request.bytes;
  block->bytes -= request.bytes;
  block->pool->insert(block);
  return front;
}

// A free block of the same segment between two others.
CachingAllocator::Block* CachingAllocator::cut(const Block& of, std::uint64_t address, std::uint64_t bytes, Block* before, Block* after) {
  Block* made = make(of);
  made->bytes = bytes;
  made->address = address;
  made->before = before;
  made->after = after;
  if (before != nullptr) before->after = made;
  if (after != nullptr) after->before = made;
  return made;
}

void CachingAllocator::free(Block* block) {
  state_.allocated -= block->bytes;
  if (block->used_by == 0) {
    put_back(block);
  } else {
    wait_for_streams(block);
  }
}

void CachingAllocator::put_back(Block* block) {
  block->busy = false;
  if (is_free(block->before) || is_free(block->after)) {
    put_back_merged(block);
  } else {
    block->pool->insert(block);
  }
}

void CachingAllocator::put_back_merged(Block* block) {
  if (merges(*block, block->before)) merge(block, block->before);
  if (merges(*block, block->after)) merge(block, block->after);
  block->pool->insert(block);
}

// The neighbour is no more.
void CachingAllocator::merge(Block* block, Block* neighbour) {
  if (block->before == neighbour) {
    block->address = neighbour->address;
    block->before = neighbour->before;
    if (block->before != nullptr) block->before->after = block;
  } else {
    block->after = neighbour->after;
    if (block->after != nullptr) block->after->before = block;
  }
  if (neighbour->mapped) {
    block->pool->free.erase(neighbour);
  } else {
    block->pool->unmapped.erase(neighbour);
  }
  block->bytes += neighbour->bytes;
  discard(neighbour);
}

}  // namespace rehearse::sim
