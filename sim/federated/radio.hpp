// Rates over the air by Shannon's formula (docs/federated.md, equation 8).
#pragma once

#include "config/keys.hpp"
#include "sim/federated/rates_over_time.hpp"

namespace rehearse::federated {

enum class Duplex { fdd, tdd };         // bands of their own for both directions, or one band for both
enum class Power { per_hertz, total };  // what stays the same when a device gets a part of the band: power per Hertz, or all of it
enum class Fading { none, rayleigh };
enum class Sharing { reserved, weighted, fifo };

struct PathLoss {
  double at_1_km_db = 128.1, per_decade_db = 37.6;  // 3GPP TR 36.814, urban macro
};

struct Radio {
  double band_hz = 20e6;
  double downlink_band_hz = 0;  // 0: as wide as band
  Duplex duplex = Duplex::fdd;
  Sharing sharing = Sharing::reserved;
  Power power = Power::per_hertz;
  double transmit_dbm = 23, base_dbm = 30, noise_dbm_per_hz = -174;
  PathLoss path_loss;
  Fading fading = Fading::none;
  std::vector<RateRow> rates;  // over time; none: as the devices say

  [[nodiscard]] double downlink_hz() const { return downlink_band_hz > 0 ? downlink_band_hz : band_hz; }
};

[[nodiscard]] const config::Keys<Radio>& radio_keys();
[[nodiscard]] const config::Names<Sharing>& sharings();

// p g / N0 of a sender with that power at that distance, in Hz: over a band B the ratio of signal to noise is this / B.
[[nodiscard]] double signal_hz(const Radio& radio, double power_dbm, double distance_m);
// (8) of a band, in bytes per second.
[[nodiscard]] double rate_bytes_per_s(double band_hz, double signal_hz);

}  // namespace rehearse::federated
