// Blocks that were used on other streams than their own.
#include <algorithm>
#include <bit>
#include <stdexcept>

#include "sim/memory/caching_allocator.hpp"

namespace rehearse::sim {

std::size_t CachingAllocator::index_of(int stream) {
  const auto found = std::ranges::find(streams_, stream, &StreamUses::stream);
  if (found != streams_.end()) return static_cast<std::size_t>(found - streams_.begin());
  if (streams_.size() == most_streams) throw std::length_error("more streams than the caching allocator knows");
  streams_.push_back({.stream = stream, .waiting = {}});
  return streams_.size() - 1;
}

void CachingAllocator::use(Block* block, int stream) {
  if (stream != block->stream) block->used_by |= std::uint64_t{1} << index_of(stream);
}

void CachingAllocator::use(Request& request, int stream) {
  if (stream != request.stream) request.used_by |= std::uint64_t{1} << index_of(stream);
}

void CachingAllocator::finish(int stream) {
  StreamUses& uses = streams_[index_of(stream)];
  uses.finished = uses.waiting.size();
  any_finished_ = true;
}

std::uint64_t CachingAllocator::freed_in_use(int stream) {
  const StreamUses& uses = streams_[index_of(stream)];
  return uses.gone + uses.waiting.size();
}

void CachingAllocator::finish(int stream, std::uint64_t count) {
  StreamUses& uses = streams_[index_of(stream)];
  if (count <= uses.gone + uses.finished) return;
  uses.finished = std::min<std::size_t>(count - uses.gone, uses.waiting.size());
  any_finished_ = true;
}

void CachingAllocator::wait_for_streams(Block* block) {
  for (; block->used_by != 0; block->used_by &= block->used_by - 1) {
    streams_[static_cast<std::size_t>(std::countr_zero(block->used_by))].waiting.push_back(block);
    ++block->waits_for;
  }
}

void CachingAllocator::free_what_streams_finished() {
  any_finished_ = false;
  for (StreamUses& uses : streams_) {
    const auto end = uses.waiting.begin() + static_cast<std::ptrdiff_t>(uses.finished);
    for (auto block = uses.waiting.begin(); block != end; ++block) {
      if (--(*block)->waits_for == 0) put_back(*block);
    }
    uses.waiting.erase(uses.waiting.begin(), end);
    uses.gone += uses.finished;
    uses.finished = 0;
  }
}

}  // namespace rehearse::sim
