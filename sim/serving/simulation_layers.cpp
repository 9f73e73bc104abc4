// Passes layer by layer: what an instance sends between its nodes shares links with caches that are handed over (docs/serving.md,
// "Layer by layer").
#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

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
  layers.times = 1;
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
  Layers& layers = layers_[instance];
  const double before = layers.times;
  std::tie(layers.way, layers.times) = way_of(layers);
  if (layers.times != before) machine_.set_bandwidth(layers.own, layers.times * layers.bytes / layers.sent_s);
  layers.sending = true;
  machine_.transfer(host_, host_, layers.way, layers.times * layers.bytes,
                    token_of(ServiceEvent::layer_sent, instance, generation_[instance]));
}

bool ServiceSimulation::crosses_gone(const std::vector<LinkIndex>& links) const {
  return std::ranges::any_of(links, [&](LinkIndex link) { return std::ranges::count(gone_, link) > 0; });
}

std::pair<std::vector<LinkIndex>, double> ServiceSimulation::way_of(const Layers& layers) const {
  if (gone_.empty() || !crosses_gone(layers.links)) return {layers.links, 1};
  std::vector<LinkIndex> way;
  std::map<int, std::pair<double, double>> ports;  // by domain: all, and those that are left
  for (std::size_t i = 0; i < layers.domains.size(); ++i) {
    auto& [all, left] = ports[layers.domains[i]];
    ++all;
    if (std::ranges::count(gone_, layers.links[i]) > 0) continue;
    ++left;
    way.push_back(layers.links[i]);
  }
  double times = 1;
  for (const auto& [domain, its] : ports) {
    if (its.second <= 0) return {layers.links, 1};
    times = std::max(times, its.first / its.second);
  }
  way.push_back(layers.own);
  return {std::move(way), times};
}

// The layer under way begins to send anew, where there is another way.
void ServiceSimulation::send_layer_around(std::size_t instance) {
  const Layers& layers = layers_[instance];
  if (!layers.sending || !crosses_gone(layers.way) || crosses_gone(way_of(layers).first)) return;
  machine_.halt([&](Token token) { return event_of(token) == ServiceEvent::layer_sent && index_of(token) == instance; });
  send_layer(instance);
}

void ServiceSimulation::layer_is_computed(std::size_t instance) {
  Layers& layers = layers_[instance];
  if (!layers.beside) send_layer(instance);
  if (--layers.open == 0) next_layer(instance);
}

void ServiceSimulation::layer_is_sent(std::size_t instance) {
  layers_[instance].sending = false;
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
  layers_[instance].sending = false;
  machine_.halt([&](Token token) { return event_of(token) == ServiceEvent::layer_sent && index_of(token) == instance; });
}

}  // namespace rehearse::sim
