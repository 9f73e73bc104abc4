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

// Only the router by length tells requests apart by where they may go.
void ServiceSimulation::line_up(RequestId id) {
  const RequestRouter& router = RouterRegistry::get(setup_.decode_router);
  RoomLines::Instances to;
  if (router.goes_by() == GoesBy::lengths) {
    for (const auto& one : sides_.back().instances) to.push_back(router.sends(*one, id));
  }
  wanting_room_.push(id, std::move(to));
}

// First come, first served: who does not fit keeps back those behind that may be sent to the same instances of those that work.
void ServiceSimulation::try_decode_room() {
  const ServiceSide& side = sides_.back();
  std::vector<bool> closed;
  while (const auto line = wanting_room_.next(closed)) {
    closed.resize(wanting_room_.lines(), false);
    const RequestId id = wanting_room_.front(*line);
    if (const auto room = room_for(id)) {
      wanting_room_.pop(*line);
      place_decode(id, *room);
      continue;
    }
    const auto alike = [&](std::size_t other) {
      const RoomLines::Instances &to = wanting_room_.to(*line), &too = wanting_room_.to(other);
      return to == too || std::ranges::all_of(side.up_at, [&](std::size_t at) { return to[at - side.first] == too[at - side.first]; });
    };
    for (std::size_t other = 0; other < closed.size(); ++other) closed[other] = closed[other] || alike(other);
  }
}

}  // namespace rehearse::sim
