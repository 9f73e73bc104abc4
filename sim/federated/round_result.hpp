// One round as a method says that it goes.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "sim/federated/phases.hpp"
#include "sim/federated/plan.hpp"

namespace rehearse::federated {

enum class Fate : std::uint8_t { finished, late, dropped };
inline constexpr std::array<std::string_view, 3> fate_names{"finished", "late", "dropped"};  // in JSON and CSV
[[nodiscard]] constexpr std::string_view name_of(Fate fate) { return fate_names[static_cast<std::size_t>(fate)]; }

struct DeviceRound {
  double end_s = 0;  // when it had finished, was cut off or left
  Fate fate = Fate::finished;
  Phases phases;  // add up to the round; of a device that left, to its end
};

// Of a medium or the server.
struct ResourceUse {
  double busy_s = 0;      // seconds of it at its whole capacity
  double reserved_s = 0;  // seconds of the round that are set aside for somebody
};

struct RoundResult {
  std::string method;  // "formula", "simulated"
  double round_s = 0;  // with aggregation
  double aggregation_s = 0;
  std::vector<DeviceRound> devices;      // [device]; empty where a method only bounds the round
  ResourceUse uplink, downlink, server;  // with one band uplink has both directions
  std::size_t simulated = 0;             // devices; the others are as one of these

  // Whether somebody did, for all that is known: a round in which nobody did trains nothing.
  [[nodiscard]] bool anybody_finished() const;
};

// Formula (1) to (7) of the plan's shares, up to the job's deadline: who is late is cut off, every phase in proportion. Where something is
// served first come first served there is no closed form: the round is then the bound (14), and there are no devices.
[[nodiscard]] RoundResult round_by_formula(const Job& job, const Plan& plan);
[[nodiscard]] bool has_closed_form(const Job& job);

}  // namespace rehearse::federated
