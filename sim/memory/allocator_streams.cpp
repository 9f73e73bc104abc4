// Blocks that were used on other streams than their own.
#include <algorithm>
#include <utility>

#include "sim/memory/caching_allocator.hpp"

namespace rehearse::sim {

void CachingAllocator::use(Block* block, int stream) {
  if (stream == block->stream || std::ranges::find(block->used_by, stream) != block->used_by.end()) return;
  block->used_by.push_back(stream);
}

void CachingAllocator::finish(int stream) {
  StreamUses& uses = streams_[stream];
  uses.finished = uses.recorded;
  any_finished_ = true;
}

void CachingAllocator::wait_for_streams(Block* block) {
  for (const int stream : block->used_by) {
    StreamUses& uses = streams_[stream];
    uses.waiting.push_back({++uses.recorded, block});
    ++block->waits_for;
  }
  block->used_by.clear();
}

void CachingAllocator::free_what_streams_finished() {
  if (!std::exchange(any_finished_, false)) return;
  for (auto& [stream, uses] : streams_) {
    while (!uses.waiting.empty() && uses.waiting.front().number <= uses.finished) {
      Block* block = uses.waiting.front().block;
      uses.waiting.pop_front();
      count_finished_use(block);
    }
  }
}

void CachingAllocator::count_finished_use(Block* block) {
  if (--block->waits_for == 0) put_back(block);
}

}  // namespace rehearse::sim
