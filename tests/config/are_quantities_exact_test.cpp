#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "config/quantity.hpp"

namespace rehearse::config {
namespace {

constexpr Dimension all_dimensions[] = {Dimension::time,  Dimension::bytes,         Dimension::bandwidth, Dimension::compute_rate,
                                        Dimension::rate,  Dimension::power,         Dimension::frequency, Dimension::length,
                                        Dimension::level, Dimension::level_density, Dimension::chance};

double parsed(std::string_view text, Dimension dimension) {
  std::string why;
  const auto value = parse_quantity(text, dimension, why);
  EXPECT_TRUE(value) << text << ": " << why;
  return value.value_or(NAN);
}

std::string refused(std::string_view text, Dimension dimension) {
  std::string why;
  EXPECT_FALSE(parse_quantity(text, dimension, why)) << text;
  return why;
}

TEST(AreQuantitiesExact, every_unit_is_its_definition) {
  EXPECT_EQ(parsed("5 us", Dimension::time), 5e-6);
  EXPECT_EQ(parsed("3 ns", Dimension::time), 3e-9);
  EXPECT_EQ(parsed("7 ms", Dimension::time), 7e-3);
  EXPECT_EQ(parsed("10 min", Dimension::time), 600);
  EXPECT_EQ(parsed("2 h", Dimension::time), 7200);
  EXPECT_EQ(parsed("54 days", Dimension::time), 54 * 86400.0);
  EXPECT_EQ(parsed("80 GiB", Dimension::bytes), 80.0 * 1073741824);
  EXPECT_EQ(parsed("80 GB", Dimension::bytes), 80e9);
  EXPECT_EQ(parsed("1 PB", Dimension::bytes), 1e15);
  EXPECT_EQ(parsed("400 Gbps", Dimension::bandwidth), 50e9);  // 400e9 bits / 8
  EXPECT_EQ(parsed("300 GB/s", Dimension::bandwidth), 300e9);
  EXPECT_EQ(parsed("1 MiB/s", Dimension::bandwidth), 1048576);
  EXPECT_EQ(parsed("312 TFLOP/s", Dimension::compute_rate), 312e12);
  EXPECT_EQ(parsed("312 TFLOPS", Dimension::compute_rate), 312e12);
  EXPECT_EQ(parsed("0.005 /day", Dimension::rate), 0.005 / 86400);
  EXPECT_EQ(parsed("6 /min", Dimension::rate), 0.1);
  EXPECT_EQ(parsed("0.7 kW", Dimension::power), 700);
  EXPECT_EQ(parsed("1.98 GHz", Dimension::frequency), 1.98e9);
  EXPECT_EQ(parsed("1.2 km", Dimension::length), 1200.0);
  EXPECT_EQ(parsed("-174 dBm/Hz", Dimension::level_density), -174.0);
  EXPECT_EQ(parsed("23 dBm", Dimension::level), 23.0);
  EXPECT_EQ(parsed("0.02 /round", Dimension::chance), 0.02);
}

TEST(AreQuantitiesExact, spaces_do_not_matter) {
  EXPECT_EQ(parsed("5us", Dimension::time), 5e-6);
  EXPECT_EQ(parsed("  5   us ", Dimension::time), 5e-6);
  EXPECT_EQ(parsed("1e3us", Dimension::time), 1e-3);
  EXPECT_EQ(parsed(".5 s", Dimension::time), 0.5);
}

// format_quantity promises the same double back, whatever the value.
TEST(AreQuantitiesExact, format_then_parse_is_the_identity) {
  std::mt19937_64 random(20240607);
  std::uniform_real_distribution<double> exponent(-30, 30);
  for (const Dimension dimension : all_dimensions) {
    for (int i = 0; i < 5000; ++i) {
      const double value = std::pow(10.0, exponent(random));
      EXPECT_EQ(parsed(format_quantity(value, dimension), dimension), value);
    }
  }
}

TEST(AreQuantitiesExact, formatted_in_the_base_unit) {
  EXPECT_EQ(format_quantity(5e-6, Dimension::time), "5e-06 s");
  EXPECT_EQ(format_quantity(400e9, Dimension::bandwidth), "400000000000 B/s");
  EXPECT_EQ(format_quantity(0, Dimension::bytes), "0 B");
}

// Three significant digits are off by at most half a unit of the last one: 0.005 of 1.00, half a per cent.
TEST(AreQuantitiesExact, for_people_within_half_a_per_cent) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> exponent(-6, 12);
  for (const Dimension dimension : all_dimensions) {
    for (int i = 0; i < 2000; ++i) {
      const double value = std::pow(10.0, exponent(random));
      if (dimension != Dimension::time && value < 1) continue;  // nothing below the base unit
      if (dimension == Dimension::rate && value > 100) continue;
      EXPECT_NEAR(parsed(human_quantity(value, dimension), dimension), value, 0.00501 * value) << human_quantity(value, dimension);
    }
  }
}

TEST(AreQuantitiesExact, for_people_in_a_fitting_unit) {
  EXPECT_EQ(human_quantity(27.83, Dimension::time), "27.8 s");
  EXPECT_EQ(human_quantity(0.00419, Dimension::time), "4.19 ms");
  EXPECT_EQ(human_quantity(0.9996e-3, Dimension::time), "1.00 ms");
  EXPECT_EQ(human_quantity(90, Dimension::time), "1.50 min");
  EXPECT_EQ(human_quantity(450e9, Dimension::bandwidth), "450 GB/s");
  EXPECT_EQ(human_quantity(80.0 * 1073741824, Dimension::bytes), "80.0 GiB");
  EXPECT_EQ(human_quantity(0.005 / 86400, Dimension::rate), "0.01 /day");
  EXPECT_EQ(human_quantity(0, Dimension::time), "0 s");
}

TEST(AreQuantitiesExact, refusals_say_what_to_write) {
  EXPECT_EQ(refused("5", Dimension::time), "a unit is missing (write 5 us or 5 ms)");
  EXPECT_EQ(refused("80", Dimension::bytes), "a unit is missing (write 80 GiB or 80 GB)");
  EXPECT_EQ(refused("5 Gps", Dimension::power), "unknown unit 'Gps' (known: W, kW, MW)");
  EXPECT_EQ(refused("5 us", Dimension::frequency), "unknown unit 'us' (known: Hz, MHz, GHz)");
  EXPECT_EQ(refused("1e400 s", Dimension::time), "'1e400 s' is out of range");
  EXPECT_EQ(refused("1e31 s", Dimension::time), "'1e31 s' is out of range");
  EXPECT_EQ(refused("-1e31 dBm", Dimension::level), "'-1e31 dBm' is out of range");
  EXPECT_EQ(refused("1e-31 B/s", Dimension::bandwidth), "'1e-31 B/s' is out of range");
  EXPECT_EQ(parsed("0 s", Dimension::time), 0);
  EXPECT_EQ(refused("nan s", Dimension::time), "'nan s' does not start with a number (write 5 us or 5 ms)");
  EXPECT_EQ(refused("inf s", Dimension::time), "'inf s' does not start with a number (write 5 us or 5 ms)");
  EXPECT_EQ(refused("", Dimension::time), "'' does not start with a number (write 5 us or 5 ms)");
  EXPECT_EQ(refused("0x10 s", Dimension::time), "unknown unit 'x10 s' (known: ns, us, ms, s, min, h, day, days)");
  EXPECT_EQ(refused("5 us us", Dimension::time), "unknown unit 'us us' (known: ns, us, ms, s, min, h, day, days)");
}

}  // namespace
}  // namespace rehearse::config
