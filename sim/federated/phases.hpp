// What a device does with the time of a round.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace rehearse::federated {

enum class Phase : std::uint8_t { forward, uplink, server, downlink, backward, model, latency, waiting, aggregation };
inline constexpr std::size_t phase_count = 9;

struct PhaseNames {
  std::string_view name, key;  // key: in JSON and CSV
};
// model: the model to the device and back; waiting: for the others (barrier); aggregation: the server averages the models.
inline constexpr std::array<PhaseNames, phase_count> phase_names{{{"device forward", "device_forward"},
                                                                  {"uplink", "uplink"},
                                                                  {"server", "server"},
                                                                  {"downlink", "downlink"},
                                                                  {"device backward", "device_backward"},
                                                                  {"model exchange", "model_exchange"},
                                                                  {"latency", "latency"},
                                                                  {"waiting", "waiting"},
                                                                  {"aggregation", "aggregation"}}};

// Seconds by phase.
struct Phases {
  std::array<double, phase_count> seconds{};
  double& operator[](Phase phase) { return seconds[static_cast<std::size_t>(phase)]; }
  double operator[](Phase phase) const { return seconds[static_cast<std::size_t>(phase)]; }
  [[nodiscard]] double sum() const {
    double sum = 0;
    for (const double s : seconds) sum += s;
    return sum;
  }
};

}  // namespace rehearse::federated
