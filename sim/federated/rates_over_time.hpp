// Rates of devices as they were measured over time (`radio.rates`).
#pragma once

#include <string>
#include <vector>

#include "config/form.hpp"

namespace rehearse::federated {

struct RateRow {
  double from_s = 0;
  std::string device;
  double uplink_bytes_per_s = 0, downlink_bytes_per_s = 0;
  config::Position where = {};
};

// A list of [time_s, device, uplink_bytes_per_s, downlink_bytes_per_s], or the name of a CSV file with these columns.
[[nodiscard]] config::Form<std::vector<RateRow>> rate_rows_form();

struct Device;

class RatesOverTime {
 public:
  // names: of all devices, in order. Throws config::InputError at a row of no device, or one earlier than the device's row before it.
  RatesOverTime(const std::vector<RateRow>& rows, const std::vector<std::string>& names);

  // Gives a device the rates of its last row at or before that time; one without such a row keeps its own.
  void apply(std::size_t device, double at_s, Device& to) const;

 private:
  std::vector<std::vector<RateRow>> rows_;  // [device]
};

}  // namespace rehearse::federated
