#include "workloads/serving/cache_bytes.hpp"

#include <algorithm>

#include "workloads/operators/section.hpp"

namespace rehearse::workloads {
namespace {

// Of the stage that has the most of them.
int most_attention_layers(const InstancePlan& plan) {
  int most = 0;
  for (int stage = 0; stage < plan.pp; ++stage) {
    const int first = plan.model.layers * stage / plan.pp, last = plan.model.layers * (stage + 1) / plan.pp;
    most = std::max(most, caching_layers(plan.model, first, last).attention);
  }
  return most;
}

}  // namespace

CachingLayers caching_layers(const Model& model, int first, int last) {
  CachingLayers out;
  for (int layer = first; layer < last; ++layer) {
    out.attention += model.attends(layer) ? 1 : 0;
    out.mixers += model.has_mixer(layer) ? 1 : 0;
  }
  return out;
}

CachingLayers caching_layers(const Model& model) { return caching_layers(model, 0, model.layers); }

KvBytes kv_bytes_per_token(const InstancePlan& plan) {
  const Model& model = plan.model;
  const double element = bytes_of(plan.precision.kv), fullest = most_attention_layers(plan), all = caching_layers(model).attention;
  if (model.mla) {
    const double state = (model.mla->kv_lora + model.mla->qk_rope) * element;
    return {state, fullest * state, all * state};
  }
  const double heads = std::max(1.0, static_cast<double>(model.kv_heads) / plan.tp);
  const double state = 2.0 * heads * model.head_dim * element;
  return {state, fullest * state, all * state * plan.tp};
}

MixerShare served_mixer(const InstancePlan& plan) {
  const MixerSpec& spec = *plan.model.mixer;
  MixerShare share = mixer_share(spec, shard_of(workload_of(plan, 1, {}), Reach::state));
  share.chunk = spec.chunk;
  share.state_element = bytes_of(plan.precision.state);
  return share;
}

StateBytes state_bytes(const InstancePlan& plan, int tried) {
  if (!plan.model.mixer) return {};
  const MixerShare share = served_mixer(plan);
  const double one = share.kept_state() + share.kept_convolved(tried);
  return {one, (1 + tried) * one};
}

}  // namespace rehearse::workloads
