// What an instance keeps of a sequence between two passes: keys and values of every token in layers with attention, and in layers with a
// mixer states of one size.
#pragma once

#include "workloads/mixer.hpp"
#include "workloads/serving/instance_plan.hpp"

namespace rehearse::workloads {

// Of the layers [first, last), those that attend, or have a mixer.
struct CachingLayers {
  int attention = 0, mixers = 0;
};
[[nodiscard]] CachingLayers caching_layers(const Model& model, int first, int last);
[[nodiscard]] CachingLayers caching_layers(const Model& model);

// Bytes that a token's keys and values take: on one GPU, the fullest, and in an instance as a whole with its copies (what crosses a network
// when all of it is fetched by an equal instance). A cache of 8 or 4 bits counts without its scales.
struct KvBytes {
  double per_layer = 0;  // with attention, on one GPU
  double per_gpu = 0, per_instance = 0;
};
[[nodiscard]] KvBytes kv_bytes_per_token(const InstancePlan& plan);

// What a GPU has of a layer with a mixer, its scan in whole chunks; the model has some.
[[nodiscard]] MixerShare served_mixer(const InstancePlan& plan);

// Bytes of a sequence's states in a layer with a mixer on one GPU, where so many tokens are tried beside its next one: a state behind each
// of them, and a convolution that reaches as much further (vLLM: MambaStateShapeCalculator, num_speculative_blocks). 0: there is none.
struct StateBytes {
  double one = 0, all = 0;  // behind one token; all that are kept
};
[[nodiscard]] StateBytes state_bytes(const InstancePlan& plan, int tried = 0);

}  // namespace rehearse::workloads
