// Quantities with units. SI inside: seconds, bytes, bytes per second, FLOP/s, events per second, watts, metres. Levels of power stay in
// decibels over a milliwatt (dBm), as radio writes them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rehearse::config {

enum class Dimension { time, bytes, bandwidth, compute_rate, rate, power, frequency, length, level, level_density, chance };

// Parses "400 Gbps", "300 GB/s", "5 us", "80 GiB", "10 min", "312 TFLOP/s", "0.005 /day", "700 W", "1.98 GHz".
// Units: time ns us ms s min h day(s); bytes B kB MB GB TB PB (powers of 1000) and KiB MiB GiB TiB PiB (of 1024);
// bandwidth any byte unit + "/s", or bps kbps Mbps Gbps Tbps (bits); compute GFLOP/s TFLOP/s PFLOP/s (also "TFLOPS");
// rate /s /min /h /day; power W kW MW; frequency Hz MHz GHz; length m km; level dBm; level density dBm/Hz; chance /round. The space is
// optional.
// On failure returns nothing and sets `why` to a sentence: "a unit is missing (write 5 us or 5 ms)", "unknown unit 'Gps'".
[[nodiscard]] std::optional<double> parse_quantity(std::string_view text, Dimension dimension, std::string& why);

// The units of a dimension, the one that values are held in ("s"), and how a quantity is written: "5 us or 5 ms".
[[nodiscard]] std::vector<std::string> units_of(Dimension dimension);
[[nodiscard]] std::string_view base_unit_of(Dimension dimension);
[[nodiscard]] std::string_view example_of(Dimension dimension);

// Shortest text that parses back to exactly the same double, in the dimension's base unit ("5e-06 s", "400000000000 B/s").
[[nodiscard]] std::string format_quantity(double value, Dimension dimension);

// For people: three significant digits and a fitting unit ("27.8 s", "4.19 ms", "450 GB/s", "80.0 GiB").
[[nodiscard]] std::string human_quantity(double value, Dimension dimension);

}  // namespace rehearse::config
