// What a source counts that says how much of a GPU's memory a training takes.
#pragma once

#include <cstdint>
#include <optional>

#include "config/keys.hpp"
#include "sim/result.hpp"

namespace rehearse::sim {

// Live tensors (torch.cuda.max_memory_allocated), what the allocator holds (max_memory_reserved), or all of the device that is taken.
enum class MemoryCounter : std::uint8_t { allocated, reserved, nvidia_smi };
[[nodiscard]] const config::Names<MemoryCounter>& memory_counters();

// Of which part of the training the most was read: of a later step, of the first alone, or of an update, by counters that were set back
// when backward had ended.
enum class MemoryTime : std::uint8_t { later, first, update };
[[nodiscard]] const config::Names<MemoryTime>& memory_times();

// Whose memory it is: of the pipeline stage that was read, or of the GPU with most of it.
struct MemoryReading {
  MemoryCounter counter = MemoryCounter::allocated;
  std::optional<int> stage;
  MemoryTime time = MemoryTime::later;
};

[[nodiscard]] double counted_bytes(const RankMemory& memory, MemoryCounter counter);
// Of the GPU with most of it; 0 without ranks.
[[nodiscard]] double counted_bytes(const MemoryResult& memory, MemoryCounter counter);

}  // namespace rehearse::sim
