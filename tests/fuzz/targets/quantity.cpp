#include "config/quantity.hpp"

#include <cmath>

#include "tests/fuzz/target.hpp"

namespace rehearse::fuzz {
namespace {

using config::Dimension;

void check_written(double value, Dimension dimension) {
  std::string why;
  if (!std::isfinite(value)) throw Nonsense("not a finite number");
  if (config::parse_quantity(config::format_quantity(value, dimension), dimension, why) != value) throw Nonsense("read back differently");
  if (config::human_quantity(value, dimension).empty()) throw Nonsense("shown as nothing");
}

class Quantity final : public Target {
  void read(const std::string& input) const override {
    for (const auto dimension :
         {Dimension::time, Dimension::bytes, Dimension::bandwidth, Dimension::compute_rate, Dimension::rate, Dimension::power,
          Dimension::frequency, Dimension::length, Dimension::level, Dimension::level_density, Dimension::chance}) {
      std::string why;
      const auto value = config::parse_quantity(input, dimension, why);
      if (!value && why.empty()) throw Nonsense("refused without a reason");
      if (value) check_written(*value, dimension);
    }
  }
};

const TargetRegistry::Registration<Quantity> quantity_registration("quantity");

}  // namespace
}  // namespace rehearse::fuzz
