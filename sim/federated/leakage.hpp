// What the server might learn from the part of the model that a device offloads, as a number in 0..1 per cut. The measures that are
// computed are proxies: they say nothing about any attack, and every report names them.
#pragma once

#include <string>
#include <string_view>

#include "config/registry.hpp"
#include "sim/federated/chain.hpp"

namespace rehearse::federated {

class LeakageMeasure {
 public:
  static constexpr std::string_view kind = "leakage measure";
  virtual ~LeakageMeasure() = default;

  // What it is, for reports: "proxy: ...".
  [[nodiscard]] virtual std::string_view about() const = 0;
  // `held_share`: the device's share of all parameters. Throws config::InputError where the cut has none.
  [[nodiscard]] virtual double of(const Cut& cut, double held_share) const = 0;
};

using LeakageRegistry = config::Registry<LeakageMeasure>;

}  // namespace rehearse::federated
