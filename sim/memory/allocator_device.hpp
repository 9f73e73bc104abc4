// The allocator of one GPU with its peaks, as a training asks it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "sim/memory/allocator_peaks.hpp"
#include "sim/memory/caching_allocator.hpp"

namespace rehearse::sim {

// Streams whose blocks are their own (FSDP2's gathers and reductions), or that use blocks of others.
enum AllocatorStream { compute_stream, nccl_stream, gather_stream, reduce_stream, compute_as_user };

struct OutOfMemory {};

class AllocatorDevice {
 public:
  using Block = CachingAllocator::Block;
  using Request = std::optional<CachingAllocator::Request>;  // none: nothing to take
  // Streams that may use blocks of others, and a number for each.
  static constexpr std::array users{nccl_stream, reduce_stream, compute_as_user};
  using Freed = std::array<std::uint64_t, users.size()>;

  AllocatorDevice(double bytes, bool expandable_segments)
      : allocator_(static_cast<std::uint64_t>(std::max(0.0, bytes)), {.expandable_segments = expandable_segments}) {}

  // used_by: another stream that a block is used on as well; compute_stream: none.
  Request request(double bytes, AllocatorStream stream = compute_stream, AllocatorStream used_by = compute_stream) {
    if (bytes < 1) return std::nullopt;
    CachingAllocator::Request made = allocator_.request(static_cast<std::uint64_t>(bytes), stream);
    if (used_by != compute_stream) {
      allocator_.use(made, used_by);
      others_ |= 1U << used_by;
    }
    return made;
  }
  Block* take(double bytes) { return take(request(bytes)); }
  Block* take(const Request& request) { return request ? take(*request) : nullptr; }
  Block* take(const CachingAllocator::Request& request) {
    Block* block = allocator_.allocate(request);
    allocated_ = std::max(allocated_, allocator_.allocated());
    reserved_ = std::max(reserved_, allocator_.reserved());
    if (block == nullptr) throw OutOfMemory{};
    return block;
  }
  void use(Block* block, AllocatorStream stream) {
    allocator_.use(block, stream);
    others_ |= 1U << stream;
  }
  void give(Block*& block) {
    if (block != nullptr) allocator_.free(std::exchange(block, nullptr));
  }
  void give(std::vector<Block*>& blocks) {
    for (Block*& block : blocks) give(block);
    blocks.clear();
  }
  // All that other streams were given so far is done.
  void catch_up() {
    for (const AllocatorStream stream : users) {
      if (is_used_by(stream)) allocator_.finish(stream);
    }
  }
  // How many blocks that other streams use were freed so far, of each of these, and that so many are done.
  [[nodiscard]] Freed freed_in_use() {
    Freed freed{};
    for (std::size_t i = 0; i < users.size(); ++i) freed[i] = is_used_by(users[i]) ? allocator_.freed_in_use(users[i]) : 0;
    return freed;
  }
  void catch_up_to(const Freed& freed) {
    for (std::size_t i = 0; i < users.size(); ++i) {
      if (freed[i] > 0) allocator_.finish(users[i], freed[i]);
    }
  }
  void empty_cache() { allocator_.empty_cache(); }
  // Peaks are those from now on (reset_peak_memory_stats).
  void reset_peaks() {
    allocated_ = allocator_.allocated();
    reserved_ = allocator_.reserved();
  }
  [[nodiscard]] const CachingAllocator& allocator() const { return allocator_; }
  [[nodiscard]] std::vector<std::uint64_t> snapshot() const { return allocator_.snapshot(); }
  [[nodiscard]] AllocatorPeaks peaks() const {
    const AllocatorState now = allocator_.state();
    return {static_cast<double>(allocated_), static_cast<double>(reserved_), now.retries, now.out_of_memory > 0};
  }

 private:
  [[nodiscard]] bool is_used_by(AllocatorStream stream) const { return (others_ >> stream & 1U) != 0; }

  CachingAllocator allocator_;
  std::uint64_t allocated_ = 0, reserved_ = 0;
  unsigned others_ = 0;  // streams that use blocks of others, a bit each
};

}  // namespace rehearse::sim
