// To whom requests go.
#include <algorithm>
#include <optional>
#include <vector>

#include "sim/serving/simulation_state.hpp"

namespace rehearse::sim {

bool ServiceSimulation::can_serve(const ServiceSide& side, const workloads::Lengths& tokens) {
  return std::ranges::any_of(side.instances, [&](const auto& one) { return one->can_hold(tokens); });
}

// Of those that work and can hold it, which are all of them where instances are alike; of these, the ones to which its router sends it.
std::optional<std::size_t> ServiceSimulation::choose(ServiceSide& side, const std::string& router_name, RequestId id,
                                                     const workloads::Lengths& tokens) {
  const RequestRouter& router = RouterRegistry::get(router_name);
  const auto choice = [&](const std::vector<Instance*>& from) {
    return from.size() == 1 ? 0 : router.choose(from, side.memory, id, now());
  };
  const auto one_of = [&](auto may) -> std::optional<std::size_t> {
    std::vector<Instance*> able;
    std::vector<std::size_t> able_at;
    for (std::size_t i = 0; i < side.up.size(); ++i) {
      if (!may(side.up[i])) continue;
      able.push_back(side.up[i]);
      able_at.push_back(side.up_at[i]);
    }
    if (able.empty()) return std::nullopt;
    return able_at[choice(able)];
  };
  const auto holds = [&](const Instance* one) { return one->can_hold(tokens); };
  const auto sent = [&](const Instance* one) { return holds(one) && router.sends(*one, id); };
  if (side.up.empty()) return std::nullopt;
  if (std::ranges::all_of(side.up, sent)) return side.up_at[choice(side.up)];
  const auto found = one_of(sent);
  return found ? found : one_of(holds);
}

// Where there is room for it now, of those to which it may be sent.
std::optional<std::size_t> ServiceSimulation::room_for(RequestId id) {
  ServiceSide& side = sides_.back();
  const RouterMemory before = side.memory;
  const auto chosen = choose(side, setup_.decode_router, id, requests_[id].tokens);
  if (!chosen) return std::nullopt;
  if (instances_[*chosen]->reserve(id, now())) return chosen;
  const RequestRouter& router = RouterRegistry::get(setup_.decode_router);
  for (const std::size_t other : side.up_at) {
    const Instance& one = *instances_[other];
    if (one.can_hold(requests_[id].tokens) && router.sends(one, id) && instances_[other]->reserve(id, now())) return other;
  }
  side.memory = before;  // nobody was sent anywhere
  return std::nullopt;
}

// First come, first served: who does not fit keeps back those behind that may be sent to the same instances.
void ServiceSimulation::try_decode_room() {
  const RequestRouter& router = RouterRegistry::get(setup_.decode_router);
  std::vector<RequestId> kept_back;
  const auto stands_behind = [&](RequestId id) {
    return std::ranges::any_of(kept_back, [&](RequestId other) {
      return std::ranges::all_of(sides_.back().up,
                                 [&](const Instance* one) { return router.sends(*one, id) == router.sends(*one, other); });
    });
  };
  for (std::size_t next = 0; next < wanting_room_.size();) {
    const RequestId id = wanting_room_[next];
    const auto room = stands_behind(id) ? std::nullopt : room_for(id);
    if (room) {
      wanting_room_.erase(wanting_room_.begin() + static_cast<std::ptrdiff_t>(next));
      place_decode(id, *room);
      continue;
    }
    if (router.goes_by() != GoesBy::lengths) return;
    if (!stands_behind(id)) kept_back.push_back(id);
    ++next;
  }
}

}  // namespace rehearse::sim
