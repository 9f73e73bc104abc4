// A round as a graph of operations: each device's in order, and joints at which several wait for each other. Nothing here knows how long
// anything takes on a medium that others use too. One way of building it, one file, registered by the server's mode.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/registry.hpp"
#include "sim/federated/phases.hpp"
#include "sim/federated/plan.hpp"

namespace rehearse::federated {

enum class Where : std::uint8_t { device, delay, uplink, downlink, server, joint };

struct Operation {
  Phase phase = Phase::forward;
  Where where = Where::device;
  std::uint32_t joint = 0;
  double seconds = 0;  // of the resource at its whole capacity
  double share = 0;    // of the resource, where shares are reserved; its weight, where they are weights
};

// Who comes to a joint waits for all others that come to it, and then for so many seconds of the server or of the downlink.
struct Joint {
  Where where = Where::server;
  double seconds = 0;
};

struct Programs {
  std::vector<std::vector<Operation>> of;  // [device]
  std::vector<Joint> joints;
};

class RoundBuilder {
 public:
  static constexpr std::string_view kind = "server mode";
  virtual ~RoundBuilder() = default;

  // Of the devices with these numbers (one of each class that is alike).
  [[nodiscard]] virtual Programs build(const Job& job, const Plan& plan, const std::vector<std::size_t>& devices) const = 0;
};

using RoundBuilderRegistry = config::Registry<RoundBuilder>;

[[nodiscard]] std::string builder_name(ServerMode mode);

}  // namespace rehearse::federated
