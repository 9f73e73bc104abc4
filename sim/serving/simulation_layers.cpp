// Passes layer by layer: what an instance sends between its nodes shares links with caches that are handed over (docs/serving.md,
// "Layer by layer").
#include <algorithm>
#include <cmath>

#include "sim/serving/simulation_state.hpp"

namespace rehearse::sim {

// The whole pass in equal layers; in one activity where nothing of it is sent.
void ServiceSimulation::begin_pass(std::size_t instance, double seconds) {
  if (!is_layered(instance)) return schedule_end(instance, seconds);
  layers_[instance].left = 0;
  const PassNetwork sent = setup_.pools[pool_of_[instance]].price->network(instances_[instance]->pass_shape());
  if (sent.bytes <= 0 || layers_[instance].links.size() < 2) return schedule_end(instance, seconds);
  generation_[instance] = (generation_[instance] + 1) % generations;
  const LayeredPasses& how = setup_.layered[instance];
  Layers& layers = layers_[instance];
  layers.left = how.layers;
  layers.beside = sent.beside;
  layers.sent_s = std::min(sent.seconds, seconds) / how.layers;
  layers.compute_s = (seconds - (sent.beside ? 0 : std::min(sent.seconds, seconds))) / how.layers;
  layers.bytes = std::min(sent.bytes * how.gpus_each / how.layers, layers.sent_s * layers.port_bytes_per_s);
  machine_.set_bandwidth(layers.own, layers.bytes / layers.sent_s);
  begin_layer(instance);
}

void ServiceSimulation::begin_layer(std::size_t instance) {
  Layers& layers = layers_[instance];
  layers.open = 2;
  machine_.after(layers.compute_s, token_of(ServiceEvent::layer_computed, instance, generation_[instance]));
  if (layers.beside) send_layer(instance);
}

void ServiceSimulation::send_layer(std::size_t instance) {
  const Layers& layers = layers_[instance];
  machine_.transfer(host_, host_, layers.links, layers.bytes, token_of(ServiceEvent::layer_sent, instance, generation_[instance]));
}

void ServiceSimulation::layer_is_computed(std::size_t instance) {
  Layers& layers = layers_[instance];
  if (!layers.beside) send_layer(instance);
  if (--layers.open == 0) next_layer(instance);
}

void ServiceSimulation::layer_is_sent(std::size_t instance) {
  if (--layers_[instance].open == 0) next_layer(instance);
}

void ServiceSimulation::next_layer(std::size_t instance) {
  Layers& layers = layers_[instance];
  if (--layers.left == 0) {
    instances_[instance]->ends_at(now());
    return end_pass(instance);
  }
  const bool hands_over = apart() && instance < sides_.back().first && setup_.transfers->layers() > 1;
  if (hands_over && instances_[instance]->under_way().prompts > 0) end_layer(instance);
  begin_layer(instance);
}

void ServiceSimulation::stop_layers(std::size_t instance) {
  if (!is_layered(instance)) return;
  layers_[instance].left = 0;
  machine_.halt([&](Token token) { return event_of(token) == ServiceEvent::layer_sent && index_of(token) == instance; });
}

}  // namespace rehearse::sim
