// The participants: entries of a job (one device, so many alike, so many drawn), and the devices that they make.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/keys.hpp"
#include "sim/federated/drawn.hpp"
#include "sim/federated/radio.hpp"

namespace rehearse::federated {

struct PowerDraw {
  double compute_w = 0, transmit_w = 0, receive_w = 0, idle_w = 0;
};

struct Entry {
  std::string name;
  int count = 1;
  Drawn flop_per_s;
  Drawn memory_bytes;  // 0: no limit
  Drawn samples;
  std::optional<Drawn> uplink_bytes_per_s, downlink_bytes_per_s, distance_m;  // both rates, or the distance
  Drawn latency_s;
  std::optional<Drawn> leakage;  // limit
  std::optional<PowerDraw> power;
  bool dedicated = false;              // its link is nobody else's
  std::optional<double> s_per_sample;  // of a forward pass of the whole model, until the model is known; then it is a speed
  config::Position where;

  // Whether its devices are all alike.
  [[nodiscard]] bool alike() const;
};

struct Device {
  std::uint32_t entry = 0, number = 0;  // the number within its entry, from 1
  double flop_per_s = 0, memory_bytes = 0, samples = 0;
  double uplink_bytes_per_s = 0, downlink_bytes_per_s = 0;  // with the whole band
  double uplink_signal_hz = 0, downlink_signal_hz = 0;      // 0: the rates are given
  double distance_m = 0;                                    // 0: the rates are given
  double latency_s = 0;
  double leakage_limit = 1;
};

inline constexpr int most_devices = 1'000'000;

// `devices`: a list of entries, or {file: devices.csv}. Throws config::InputError.
[[nodiscard]] std::vector<Entry> read_entries(const config::Node& node);
[[nodiscard]] config::Node write_entries(const std::vector<Entry>& entries);
[[nodiscard]] config::Shape entries_shape();
// CSV: name, count, speed_flop_per_s or ms_per_sample, uplink_bytes_per_s, downlink_bytes_per_s, latency_s, samples, memory_bytes, leakage.
[[nodiscard]] std::vector<Entry> read_device_csv(const config::Node& path);

// "pi", and of several alike "pi 3".
[[nodiscard]] std::string name_of(const std::vector<Entry>& entries, const Device& device);

// All devices of the entries. What is drawn depends on the seed, the entry's place and the device's number alone. Throws
// config::InputError, with the device's name.
[[nodiscard]] std::vector<Device> make_devices(const std::vector<Entry>& entries, const Radio& radio, double default_limit,
                                               std::uint64_t seed);

}  // namespace rehearse::federated
