// To which instance of a pool a request goes. One policy, one .cpp in routers/, registered by name.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "config/random.hpp"
#include "config/registry.hpp"
#include "sim/serving/instance.hpp"

namespace rehearse::sim {

struct RouterMemory {
  std::size_t next = 0;  // instance after the one chosen last
  config::Random random{0};
};

// What a router tells instances apart by, as the formula asks it: by nothing, at random or in turn; or by what an instance has of each.
// seconds: how long it has to compute, so that a router knows who is slow. lengths: who takes what is settled by prompts' lengths, and
// among those by what they have of requests.
enum class GoesBy : std::uint8_t { chance, turns, requests, caches, tokens, seconds, lengths };

class RequestRouter {
 public:
  static constexpr std::string_view kind = "router";
  virtual ~RequestRouter() = default;
  [[nodiscard]] virtual GoesBy goes_by() const = 0;
  // Whether it looks for what caches hold of a request's own prompt.
  [[nodiscard]] virtual bool finds_prefixes() const { return false; }
  // Whether a request may go there; where no instance works to which it may, it goes to any that does.
  [[nodiscard]] virtual bool sends(const Instance& /*to*/, RequestId /*request*/) const { return true; }
  // An index into `instances`, which is not empty.
  [[nodiscard]] virtual std::size_t choose(const std::vector<Instance*>& instances, RouterMemory& memory, RequestId request,
                                           double now_s) const = 0;
};

using RouterRegistry = config::Registry<RequestRouter>;

// Of the instances with the least of what `load` says of it, the one that comes first after the one chosen last: equals take turns.
template <class Load>
[[nodiscard]] std::size_t least(const std::vector<Instance*>& instances, RouterMemory& memory, Load load) {
  const std::size_t count = instances.size(), first = memory.next % count;
  std::size_t best = first;
  auto least = load(*instances[first]);
  for (std::size_t step = 1; step < count; ++step) {
    const std::size_t i = (first + step) % count;
    if (const auto next = load(*instances[i]); next < least) {
      least = next;
      best = i;
    }
  }
  memory.next = best + 1;
  return best;
}

}  // namespace rehearse::sim
