#include "sim/cost/precision_names.hpp"

#include <array>

namespace rehearse::sim {
namespace {

using workloads::DType;
constexpr std::array<DType, 5> all_types{DType::fp32, DType::bf16, DType::fp16, DType::fp8, DType::fp4};

}  // namespace

std::vector<std::string> precision_names() {
  std::vector<std::string> names;
  for (const DType type : all_types) names.emplace_back(name_of(type));
  return names;
}

std::optional<DType> precision_of(std::string_view name) {
  for (const DType type : all_types) {
    if (name_of(type) == name) return type;
  }
  return std::nullopt;
}

}  // namespace rehearse::sim
