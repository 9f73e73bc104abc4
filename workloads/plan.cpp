#include "workloads/plan.hpp"

#include "workloads/schedule.hpp"

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
  const Schedule& schedule = ScheduleRegistry::get(workload.schedule);
  const PipelineShape shape = pipeline_shape(workload);
  const std::vector<int> layers = layers_of_chunks(workload);
  const bool has_ends = workload.model.vocab > 0;
  const auto depth = static_cast<int>(layers.size());
  std::vector<std::vector<Chunk>> split(shape.stages, std::vector<Chunk>(shape.chunks));
  for (const int microbatch : {0, shape.microbatches - 1}) {  // a mirroring schedule leads the last one the other way
    int first_layer = 0;
    for (int position = 0; position < depth; ++position) {
      const Location at = schedule.location(shape, microbatch, position);
      split[at.stage][at.chunk] = {first_layer, layers[position], has_ends && position == 0, has_ends && position + 1 == depth};
      first_layer += layers[position];
    }
  }
  return split;
}

bool ends_meet(const Workload& workload) {
  const Schedule& schedule = ScheduleRegistry::get(workload.schedule);
  const PipelineShape shape = pipeline_shape(workload);
  return schedule.mirrors() || schedule.location(shape, 0, 0).stage == schedule.location(shape, 0, schedule.depth(shape) - 1).stage;
}

double step_flops_per_sequence(const Workload& workload, bool causal_half) {
  const Batch& batch = workload.batch;
  const double all = model_flops_per_sequence(workload.model, batch.sequence, causal_half, batch.context());
  if (!workload.lora.on()) return all;
  const double attention = attention_flops_per_sequence(workload.model, batch.sequence, causal_half, batch.context());
  return (all - attention) * 2 / 3 + attention;
}

bool has_module(const Model& model, RecomputeModule module) {
  switch (module) {
    case RecomputeModule::core_attn:
      return model.any_attention();
    case RecomputeModule::mla_up_proj:
      return model.mla.has_value();
    case RecomputeModule::mlp:
    case RecomputeModule::mlp_act:
      return model.any_mlp();
    case RecomputeModule::moe_act:
      return model.moe.has_value();
    case RecomputeModule::shared_experts:
      return model.moe.has_value() && model.moe->shared > 0;
    default:
      return true;
  }
}

bool has_output(const Model& model, LayerOutput output) {
  if (output == LayerOutput::expert_fc2) return model.moe.has_value();
  const bool of_mlp = output == LayerOutput::linear_fc1 || output == LayerOutput::linear_fc2;
  return has_module(model, of_mlp ? RecomputeModule::mlp : RecomputeModule::core_attn);
}

}  // namespace rehearse::workloads
