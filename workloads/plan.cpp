#include "workloads/plan.hpp"

namespace rehearse::workloads {
namespace {

// Layers of each model chunk in model order. What does not divide goes to the middle stages: the outer ones also hold the embedding and the
// head.
std::vector<int> layers_of_chunks(const Workload& workload) {
  if (!workload.parallel.layers_per_stage.empty()) return workload.parallel.layers_per_stage;
  const int chunks = workload.parallel.pp * workload.parallel.vpp;
  const int remainder = workload.model.layers % chunks;
  std::vector<int> layers(static_cast<std::size_t>(chunks), workload.model.layers / chunks);
  const int first_longer = (chunks - remainder) / 2;
  for (int i = 0; i < remainder; ++i) ++layers[static_cast<std::size_t>(first_longer + i)];
  return layers;
}

}  // namespace

double bytes_of(DType type) {
  switch (type) {
    case DType::fp32:
      return 4;
    case DType::bf16:
    case DType::fp16:
      return 2;
    case DType::fp8:
      return 1;
    case DType::fp4:
      break;
  }
  return 0.5;
}

std::string_view name_of(DType type) {
  switch (type) {
    case DType::fp32:
      return "fp32";
    case DType::bf16:
      return "bf16";
    case DType::fp16:
      return "fp16";
    case DType::fp8:
      return "fp8";
    case DType::fp4:
      break;
  }
  return "fp4";
}

std::vector<std::vector<Chunk>> split_layers(const Workload& workload) {
  const auto stages = static_cast<std::size_t>(workload.parallel.pp);
  const std::vector<int> layers = layers_of_chunks(workload);
  const bool has_ends = workload.model.vocab > 0;
  std::vector<std::vector<Chunk>> split(stages);
  int first_layer = 0;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    split[i % stages].push_back({first_layer, layers[i], has_ends && i == 0, has_ends && i + 1 == layers.size()});
    first_layer += layers[i];
  }
  return split;
}

}  // namespace rehearse::workloads
