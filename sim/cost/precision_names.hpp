// Number formats by the names that files use: fp32, bf16, fp16, fp8, fp4.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "workloads/plan.hpp"

namespace rehearse::sim {

[[nodiscard]] std::vector<std::string> precision_names();
[[nodiscard]] std::optional<workloads::DType> precision_of(std::string_view name);

}  // namespace rehearse::sim
