#include "sim/federated/device.hpp"

#include <fmt/format.h>

#include <cmath>

namespace rehearse::federated {
namespace {

enum class Field : std::uint64_t { speed = 1, memory, samples, uplink, downlink, distance, latency, leakage };

class Maker {
 public:
  Maker(const Radio& radio, double default_limit, std::uint64_t seed) : radio_(radio), default_limit_(default_limit), seed_(seed) {}

  [[nodiscard]] Device make(const Entry& entry, std::uint32_t place, std::uint32_t number) const {
    Device device{.entry = place, .number = number};
    const auto drawn = [&](const Drawn& law, Field field) {
      return law.constant()
                 ? law.mean()
                 : law.draw(field_random(seed_, (static_cast<std::uint64_t>(place) << 32U) + number, static_cast<std::uint64_t>(field)));
    };
    device.flop_per_s = drawn(entry.flop_per_s, Field::speed);
    device.memory_bytes = drawn(entry.memory_bytes, Field::memory);
    device.samples = std::max(1.0, std::round(drawn(entry.samples, Field::samples)));
    device.latency_s = drawn(entry.latency_s, Field::latency);
    device.leakage_limit = entry.leakage ? drawn(*entry.leakage, Field::leakage) : default_limit_;
    if (entry.distance_m) {
      device.distance_m = drawn(*entry.distance_m, Field::distance);
      device.uplink_signal_hz = signal_hz(radio_, radio_.transmit_dbm, device.distance_m);
      device.downlink_signal_hz = signal_hz(radio_, radio_.base_dbm, device.distance_m);
      device.uplink_bytes_per_s = rate_bytes_per_s(radio_.band_hz, device.uplink_signal_hz);
      device.downlink_bytes_per_s =
          rate_bytes_per_s(radio_.duplex == Duplex::tdd ? radio_.band_hz : radio_.downlink_hz(), device.downlink_signal_hz);
    } else {
      device.uplink_bytes_per_s = drawn(*entry.uplink_bytes_per_s, Field::uplink);
      device.downlink_bytes_per_s = drawn(*entry.downlink_bytes_per_s, Field::downlink);
    }
    return device;
  }

 private:
  const Radio& radio_;
  double default_limit_;
  std::uint64_t seed_;
};

void check(const Entry& entry, const std::string& name, const Device& device) {
  const auto refuse = [&](std::string_view what, std::string_view hint) {
    throw config::InputError(entry.where, fmt::format("device '{}' {}", name, what), {}, hint);
  };
  const auto positive = [](double value) { return std::isfinite(value) && value > 0; };
  if (!positive(device.flop_per_s)) refuse("has a speed of 0", "speed is in FLOP/s, as achieved: 9.7 GFLOP/s");
  if (!positive(device.uplink_bytes_per_s)) refuse("has an uplink of 0", "a device that cannot send does not take part: leave it out");
  if (!positive(device.downlink_bytes_per_s))
    refuse("has a downlink of 0", "a device that cannot receive does not take part: leave it out");
}

}  // namespace

bool Entry::alike() const {
  const auto fixed = [](const std::optional<Drawn>& law) { return !law || law->constant(); };
  return flop_per_s.constant() && memory_bytes.constant() && samples.constant() && latency_s.constant() && fixed(uplink_bytes_per_s) &&
         fixed(downlink_bytes_per_s) && fixed(distance_m) && fixed(leakage);
}

std::string name_of(const std::vector<Entry>& entries, const Device& device) {
  const Entry& entry = entries[device.entry];
  return entry.count == 1 ? entry.name : fmt::format("{} {}", entry.name, device.number);
}

std::vector<Device> make_devices(const std::vector<Entry>& entries, const Radio& radio, double default_limit, std::uint64_t seed) {
  const Maker maker(radio, default_limit, seed);
  std::vector<Device> devices;
  for (std::uint32_t place = 0; place < entries.size(); ++place) {
    for (int number = 1; number <= entries[place].count; ++number) {
      devices.push_back(maker.make(entries[place], place, static_cast<std::uint32_t>(number)));
      check(entries[place], name_of(entries, devices.back()), devices.back());
    }
  }
  return devices;
}

}  // namespace rehearse::federated
