#include "workloads/parameter_tensors.hpp"

#include "workloads/mixer.hpp"
#include "workloads/operators/shard.hpp"

namespace rehearse::workloads {

int layer_tensors(const Workload& workload, const LayerShape& shape) {
  const Model& model = workload.model;
  const int inputs = workload.fusions.separate_qkv ? 3 : 1;
  const bool attends = model.heads > 0 && (shape.reach == Reach::sequence || shape.reach == Reach::window);
  const int mixer = shape.reach == Reach::state ? mixer_tensors(*model.mixer) : 0;
  const int attention = attends ? 1 + inputs + (model.qkv_bias() ? inputs : 0) + (model.projection_bias() ? 1 : 0) : 0;
  const bool feeds = shape.kind != LayerKind::none;
  const int mlp = feeds ? (model.gated() ? 3 : 2) * (model.biases ? 2 : 1) : 0;
  const int blocks = (attends || mixer > 0 ? 1 : 0) + (feeds ? 1 : 0);
  const int norms = (model.shares_norm() ? 1 : blocks) * (model.post_norms ? 2 : 1) + (model.qk_norm && attends ? 2 : 0);
  return attention + mixer + mlp + norms * (model.norm == Norm::layernorm && model.biases ? 2 : 1);
}

int head_tensors(const Workload& workload) { return workload.model.tied_embeddings && ends_meet(workload) ? 1 : 2; }

int stage_tensors(const Workload& workload) {
  const Model& model = workload.model;
  const int pp = workload.parallel.pp;
  if (workload.lora.on()) return (model.layers + pp - 1) / pp * adapter_tensors(workload);
  const int ends = model.vocab == 0 ? 0 : pp > 1 ? 2 : 1 + head_tensors(workload);
  int layers = 0;
  for (int layer = 0; layer < model.layers; ++layer) layers += layer_tensors(workload, shape_of(model, layer));
  return (layers + pp - 1) / pp + ends;
}

}  // namespace rehearse::workloads
