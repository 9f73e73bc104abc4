// What device memory is used for.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace rehearse::workloads {

// framework: what the training stack holds beside tensors (context, NCCL's buffers).
enum class MemoryUse : std::uint8_t { weights, gradients, optimizer, activations, temporary, communication, framework, count };
inline constexpr std::size_t memory_use_count = static_cast<std::size_t>(MemoryUse::count);

// Also the keys in JSON and CSV.
inline constexpr std::array<std::string_view, memory_use_count> memory_use_names{"weights",   "gradients",     "optimizer", "activations",
                                                                                 "temporary", "communication", "framework"};
[[nodiscard]] constexpr std::string_view name_of(MemoryUse use) { return memory_use_names[static_cast<std::size_t>(use)]; }

}  // namespace rehearse::workloads
