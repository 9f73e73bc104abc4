// PyTorch's CUDA caching allocator on a sequence of allocations and frees: what it keeps of the device's memory, to the byte.
//
// Every rule is taken from PyTorch 2.6 (c10/cuda/CUDACachingAllocator.cpp, functions of DeviceCachingAllocator; the names below are its
// own):
//   round_size                       512 B, or the next of `roundup_power2_divisions` between two powers of two
//   get_pool, get_allocation_size    up to 1 MiB from segments of 2 MiB, below 10 MiB from segments of 20 MiB, larger in multiples of 2 MiB
//   get_free_block                   best fit in a pool and stream: the smallest block, among equal ones the lowest address
//   should_split, try_merge_blocks   a large block is split where more than 1 MiB is left, a small one where 512 B are; neighbours that are
//                                    free become one
//   record_stream, process_events    a block that other streams used is free once they have come past its free
//   malloc                           where the device is full, free whole segments are given back and it is tried again
//                                    (garbage_collect_cached_blocks, release_available_cached_blocks, release_cached_blocks)
//   find_expandable_block, map_block, unmap_block    expandable segments, in pages of 2 MiB and 20 MiB
// Tests hold it to that allocator itself (tests/memory/data/README.md). Left out: pools of CUDA graphs and of users, sharing between
// processes.
//
// The device: as many bytes as may be taken from it, at addresses that grow from one cudaMalloc to the next. The driver's addresses may
// differ; only the choice among free blocks of one size depends on them.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "sim/memory/allocator_blocks.hpp"
#include "sim/memory/allocator_request.hpp"

namespace rehearse::sim {

// PYTORCH_CUDA_ALLOC_CONF, by the names of its settings.
struct AllocatorSettings {
  std::uint64_t max_split_bytes = UINT64_MAX;               // max_split_size_mb: larger blocks are never split
  std::uint64_t max_non_split_rounding_bytes = 20u << 20u;  // how much larger than asked for such a block may be
  // Share of the allowed memory above which free segments that were not used for long are given back; 0: never. Needs an allowed share.
  double garbage_collection_threshold = 0;
  std::uint64_t roundup_power2_divisions = 0;  // 0, 1: none
  bool expandable_segments = false;
};

struct AllocatorState {
  std::uint64_t allocated = 0;       // bytes in use, as rounded: torch.cuda.memory_allocated
  std::uint64_t reserved = 0;        // bytes taken from the device: memory_reserved
  std::uint64_t requested = 0;       // bytes as asked for, of blocks that no stream uses any more
  std::uint64_t inactive_split = 0;  // free bytes that cannot be given back since their segment is in use; without expandable segments
  std::uint64_t segments = 0;        // without expandable ones
  std::uint64_t retries = 0;         // allocations that first had all free segments given back
  std::uint64_t out_of_memory = 0;   // allocations that failed
  bool operator==(const AllocatorState&) const = default;
};

class CachingAllocator {
 public:
  using Block = allocator::Block;
  using Request = allocator::Request;
  static constexpr std::size_t most_streams = 64;

  // allowed_share: set_per_process_memory_fraction.
  explicit CachingAllocator(std::uint64_t device_bytes, AllocatorSettings settings = {}, std::optional<double> allowed_share = {});
  ~CachingAllocator();
  CachingAllocator(const CachingAllocator&) = delete;
  CachingAllocator& operator=(const CachingAllocator&) = delete;

  // bytes > 0. The block is valid until it is freed; null: out of memory, which changes nothing but what was free.
  Block* allocate(std::uint64_t bytes, int stream = 0) { return allocate(request(bytes, stream)); }
  // The same for what is asked for again and again; a request is good for this allocator alone.
  [[nodiscard]] Request request(std::uint64_t bytes, int stream = 0);
  Block* allocate(const Request& request);
  void free(Block* block);
  // The block is used by another stream than its own as well (record_stream). Of at most most_streams in all; std::length_error.
  void use(Block* block, int stream);
  // Each block that the request is given from now on.
  void use(Request& request, int stream);
  // All that the stream was given so far is done.
  void finish(int stream);
  // How many blocks were freed while the stream might still use them, and that it has come past the first `count` of these.
  [[nodiscard]] std::uint64_t freed_in_use(int stream);
  void finish(int stream, std::uint64_t count);
  // Gives free segments back (empty_cache).
  void empty_cache();

  [[nodiscard]] std::uint64_t allocated() const { return state_.allocated; }
  [[nodiscard]] std::uint64_t reserved() const { return state_.reserved; }
  // Bytes taken from the device so far, whether given back or not; times that all free segments were given back for more.
  [[nodiscard]] std::uint64_t taken() const { return taken_; }
  [[nodiscard]] std::uint64_t retries() const { return state_.retries; }
  // Adds up over all blocks.
  [[nodiscard]] AllocatorState state() const;
  // Whatever decides what is handed out next and what it adds to, in numbers: where two are equal and the same blocks are in use, the
  // allocator does the same from then on.
  [[nodiscard]] std::vector<std::uint64_t> snapshot() const;

 private:
  [[nodiscard]] std::uint64_t rounded(std::uint64_t bytes) const;
  [[nodiscard]] bool splits(const Block& block, std::uint64_t bytes) const;
  [[nodiscard]] allocator::Pool& pool_of(std::uint64_t bytes);

  Block* allocate_other_size(const Request& request);
  Block* cached(const Request& request);
  Block* not_cached(const Request& request);
  Block* from_device(const Request& request);
  Block* hand_out(Block* block, const Request& request);
  Block* in_use(Block* block, const Request& request);
  Block* split(Block* block, const Request& request);
  void put_back(Block* block);
  void put_back_merged(Block* block);
  [[nodiscard]] static bool is_free(const Block* neighbour) { return neighbour != nullptr && !neighbour->busy; }
  [[nodiscard]] static bool merges(const Block& block, const Block* neighbour) {
    return is_free(neighbour) && neighbour->mapped == block.mapped;
  }
  void merge(Block* block, Block* neighbour);

  // Blocks that other streams still use.
  [[nodiscard]] std::size_t index_of(int stream);
  void wait_for_streams(Block* block);
  void free_what_streams_finished();

  // Memory given back to the device.
  void collect_garbage();
  bool release_oversize(const Request& request);
  void release_cached();
  void release(allocator::Pool& pool);
  void release(Block* block);

  // Expandable segments.
  Block* expand(const Request& request);
  Block* expandable(const Request& request);
  bool map(Block* block, std::uint64_t bytes);
  void unmap(Block* block);
  [[nodiscard]] Block* cut(const Block& of, std::uint64_t address, std::uint64_t bytes, Block* before, Block* after);

  Block* make(const Block& as);
  void discard(Block* block);

  allocator::Device device_;
  AllocatorSettings settings_;
  std::optional<std::uint64_t> allowed_;
  AllocatorState state_;  // without what is added up
  std::uint64_t taken_ = 0;
  allocator::Pool small_{true}, large_{false};
  std::vector<std::unique_ptr<allocator::ExpandableSegment>> expandable_;
  std::deque<Block> blocks_;
  Block* spare_ = nullptr;  // those that are no more, by `higher`

  struct StreamUses {
    int stream;
    std::size_t finished = 0;     // of those that wait
    std::uint64_t gone = 0;       // those that waited before
    std::vector<Block*> waiting;  // freed, in this order
  };
  std::vector<StreamUses> streams_;
  bool any_finished_ = false;  // since the last look
  bool collects_garbage_;
  bool takes_same_size_;  // a free block of the size that is asked for is taken without a look at others
};

}  // namespace rehearse::sim
