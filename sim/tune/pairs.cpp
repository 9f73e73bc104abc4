#include "sim/tune/pairs.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <stdexcept>

namespace rehearse::sim {
namespace {

constexpr std::size_t most_axes = 32;  // 2^30 points are more than a space may have

}  // namespace

Pairs::Pairs(const Space& space) {
  for (std::size_t axis = 0; axis < space.axes().size(); ++axis) {
    const std::size_t values = space.axes()[axis].values.size();
    if (values < 2 || values > most_values) continue;
    axes_.push_back(axis);
    values_.push_back(values);
  }
  std::size_t size = 0;
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    for (std::size_t j = i + 1; j < axes_.size(); ++j) {
      offset_.push_back(size);
      size += values_[i] * values_[j];
    }
  }
  best_.assign(size, std::numeric_limits<double>::infinity());
}

template <class Use>
bool Pairs::each(const Space& space, std::uint64_t point, Use use) const {
  std::array<std::size_t, most_axes> digits{};
  for (std::size_t i = 0; i < axes_.size(); ++i) digits[i] = space.digit(point, axes_[i]);
  std::size_t pair = 0;
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    for (std::size_t j = i + 1; j < axes_.size(); ++j) {
      if (!use(offset_[pair++] + digits[i] * values_[j] + digits[j])) return false;
    }
  }
  return true;
}

double Pairs::best(std::size_t one, std::size_t value, std::size_t other, std::size_t other_value) const {
  const auto place = [&](std::size_t axis) { return static_cast<std::size_t>(std::ranges::find(axes_, axis) - axes_.begin()); };
  const std::size_t i = place(one), j = place(other);
  const std::size_t pair = i * (2 * axes_.size() - i - 1) / 2 + (j - i - 1);
  return best_[offset_[pair] + value * values_[j] + other_value];
}

void Pairs::add(const Space& space, std::uint64_t point, double goal) {
  each(space, point, [&](std::size_t at) {
    best_[at] = std::min(best_[at], goal);
    return true;
  });
}

bool Pairs::all_below(const Space& space, std::uint64_t point, double goal) const {
  return each(space, point, [&](std::size_t at) { return best_[at] < goal; });
}

void Pairs::merge(const Pairs& other) {
  for (std::size_t i = 0; i < best_.size(); ++i) best_[i] = std::min(best_[i], other.best_[i]);
}

void Pairs::set(const std::vector<double>& best) {
  if (best.size() != best_.size()) throw std::out_of_range("pairs of another space");
  best_ = best;
}

}  // namespace rehearse::sim
