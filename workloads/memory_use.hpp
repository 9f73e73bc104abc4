// What device memory is used for.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rehearse::workloads {

// framework: what the training stack holds beside tensors (context, NCCL's buffers).
enum class MemoryUse : std::uint8_t { weights, gradients, optimizer, activations, temporary, communication, framework, count };
inline constexpr std::size_t memory_use_count = static_cast<std::size_t>(MemoryUse::count);

}  // namespace rehearse::workloads
