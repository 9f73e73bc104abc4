// To which instance of a pool a request goes. One policy, one .cpp in routers/, registered by name.
#pragma once

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

class RequestRouter {
 public:
  static constexpr std::string_view kind = "router";
  virtual ~RequestRouter() = default;
  // An index into `instances`, which is not empty. Ties go to the first.
  [[nodiscard]] virtual std::size_t choose(const std::vector<std::unique_ptr<Instance>>& instances, RouterMemory& memory,
                                           double now_s) const = 0;
};

using RouterRegistry = config::Registry<RequestRouter>;

// The first instance with the least of what `load` says of it.
template <class Load>
[[nodiscard]] std::size_t least(const std::vector<std::unique_ptr<Instance>>& instances, Load load) {
  std::size_t best = 0;
  auto least = load(*instances[0]);
  for (std::size_t i = 1; i < instances.size(); ++i) {
    if (const auto next = load(*instances[i]); next < least) {
      least = next;
      best = i;
    }
  }
  return best;
}

}  // namespace rehearse::sim
