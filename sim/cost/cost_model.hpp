// Cost models found by name: `model: roofline` in a GPU file. One model, one .cpp, one registration.
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "config/node.hpp"
#include "config/registry.hpp"
#include "sim/cost/gpu.hpp"

namespace rehearse::sim {

// What the GPU's data sheet allows for the class and precision that a model is made for.
struct Ceiling {
  workloads::OperatorClass cls = workloads::OperatorClass::gemm;
  double flops_per_s = 0;  // infinity for classes that only move memory
  double memory_bytes_per_s = 0;
  double unaligned = 1;  // of flops_per_s, what is left of it to a linear layer whose rows are not aligned
};

class CostModelFactory {
 public:
  static constexpr std::string_view kind = "cost model";
  virtual ~CostModelFactory() = default;

  // Reads the parameters of one model. Throws InputError with position.
  [[nodiscard]] virtual std::unique_ptr<const CostModel> make(const config::Node& node, const Ceiling& ceiling) const = 0;
};

using CostModelRegistry = config::Registry<CostModelFactory>;

// Prices of what only inference does, out of the same mapping: `gemm_few`, products from one token on, and `attention_cache`, one query a
// sequence against the keys and values of all before it. A file without them is served by what GPUs have in common; where it has no line
// for a precision, that of gemm and attention holds.
struct FewTokenCosts {
  std::shared_ptr<const CostModel> products, cache;
};
[[nodiscard]] FewTokenCosts read_few_token_costs(const std::optional<config::Node>& efficiency, const Gpu& gpu);

[[nodiscard]] config::Shape efficiency_shape();
// Of a GPU of which the data sheet alone is known, from its peaks, bandwidth and power limit (docs/platform-formats.md): the mapping that
// its file could hold, and the models that it stands for.
[[nodiscard]] config::Node common_efficiency_mapping(const Gpu& gpu);
[[nodiscard]] std::shared_ptr<const CostModel> common_efficiency(const Gpu& gpu);
// Its `contention` and `flash` likewise, where it says nothing of them.
[[nodiscard]] config::Node common_contention_mapping(const Gpu& gpu);
[[nodiscard]] config::Node common_flash_mapping(const Gpu& gpu);
// The table of models of a GPU file: its `efficiency` mapping.
[[nodiscard]] std::shared_ptr<const CostModel> read_efficiency(const config::Node& node, const Gpu& gpu);

}  // namespace rehearse::sim
