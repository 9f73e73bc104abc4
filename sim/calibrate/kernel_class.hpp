// What a kernel does, by its name.
#pragma once

#include <cstdint>
#include <string_view>

namespace rehearse::sim {

enum class KernelClass { product, grouped_product, attention, memory_bound, communication, copy, unknown };
inline constexpr int kernel_classes = 7;
[[nodiscard]] std::string_view name_of(KernelClass cls);

[[nodiscard]] KernelClass class_of(std::string_view kernel_name);

}  // namespace rehearse::sim
