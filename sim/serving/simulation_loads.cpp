// What instances that return read before they work.
#include <algorithm>

#include "sim/serving/simulation_state.hpp"

namespace rehearse::sim {

// Repaired.
void ServiceSimulation::come_back(std::size_t instance) {
  if (down_[instance] == 1 && !setup_.loads.instances.empty()) {
    load(instance);
    if (loading_[instance] > 0) return;
  }
  if (--down_[instance] == 0) works_again(instance);
}

std::optional<std::size_t> ServiceSimulation::peer_of(std::size_t instance) const {
  if (setup_.loads.peers.empty()) return std::nullopt;
  const auto readers = [&](std::size_t peer) {
    return std::ranges::count_if(peer_loads_, [&](const auto& one) { return one.second.peer == peer; });
  };
  const auto cut_off = [&](std::size_t peer) {
    const std::vector<HandOver::Flow> flows = setup_.transfers->weights(peer, instance, setup_.loads.gpu_bytes[instance]);
    return std::ranges::any_of(flows, [&](const HandOver::Flow& flow) { return crosses_gone(flow.links); });
  };
  std::optional<std::size_t> best;
  for (const std::size_t peer : setup_.loads.peers[instance]) {
    if (down_[peer] > 0 || (!gone_.empty() && cut_off(peer))) continue;
    if (!best || readers(peer) < readers(*best)) best = peer;
  }
  return best;
}

// From another instance that works and can be reached, over the links that caches go over; else over links that others share who return.
void ServiceSimulation::load(std::size_t instance) {
  const Token token = token_of(ServiceEvent::loaded, instance);
  if (const auto peer = peer_of(instance)) {
    const std::vector<HandOver::Flow> flows = setup_.transfers->weights(*peer, instance, setup_.loads.gpu_bytes[instance]);
    loading_[instance] = flows.size();
    PeerLoad& of_it = peer_loads_[instance] = {*peer, {}};
    for (const HandOver::Flow& flow : flows) {
      of_it.links.insert(of_it.links.end(), flow.links.begin(), flow.links.end());
      machine_.transfer(host_, host_, flow.links, flow.bytes, token);
    }
    return;
  }
  const std::vector<WeightLoads::Read>& reads = setup_.loads.instances[instance];
  loading_[instance] = reads.size();
  for (const WeightLoads::Read& read : reads) machine_.transfer(host_, host_, {&load_links_[read.link], 1}, read.bytes, token);
}

void ServiceSimulation::stop_load(std::size_t instance) {
  loading_[instance] = 0;
  peer_loads_.erase(instance);
  machine_.halt([&](Token token) { return event_of(token) == ServiceEvent::loaded && index_of(token) == instance; });
}

// Who reads from it begins again with another one.
void ServiceSimulation::load_anew_from(std::size_t instance) {
  std::vector<std::size_t> readers;
  for (const auto& [reader, load] : peer_loads_) {
    if (load.peer == instance) readers.push_back(reader);
  }
  for (const std::size_t reader : readers) {
    stop_load(reader);
    load(reader);
  }
}

// Likewise over links that are cut now: another way, another instance, or what it reads from where none can be reached.
void ServiceSimulation::load_around() {
  std::vector<std::size_t> readers;
  for (const auto& [reader, load] : peer_loads_) {
    if (crosses_gone(load.links)) readers.push_back(reader);
  }
  for (const std::size_t reader : readers) {
    stop_load(reader);
    load(reader);
  }
}

void ServiceSimulation::end_load(std::size_t instance) {
  if (--loading_[instance] > 0) return;
  peer_loads_.erase(instance);
  if (--down_[instance] == 0) works_again(instance);
}

}  // namespace rehearse::sim
