#include "sim/serving/gaps.hpp"

#include <algorithm>
#include <cmath>

namespace rehearse::sim {
namespace {

constexpr double smallest_s = 1e-7, width = 1.01;
constexpr double most_parts = 16;  // of a run whose passes get longer

double width_log() { return std::log(width); }

}  // namespace

void Gaps::add(double seconds, double count) {
  if (count <= 0) return;
  const double place = seconds > smallest_s ? std::log(seconds / smallest_s) / width_log() : 0;
  const auto bin = static_cast<std::size_t>(place);
  if (bin >= bins_.size()) bins_.resize(bin + 1);
  bins_[bin] += count;
  count_ += count;
  sum_s_ += seconds * count;
  largest_s_ = std::max(largest_s_, seconds);
}

void Gaps::add_run(double first_s, double last_s, double passes, double count) {
  if (passes <= 0) return;
  const bool alike = last_s <= first_s * width;
  const double parts = alike ? 1 : std::min(passes, most_parts);
  for (int part = 0; part + 0.5 < parts; ++part) add(first_s + (last_s - first_s) * (part + 0.5) / parts, passes * count / parts);
}

void Gaps::merge(const Gaps& other) {
  bins_.resize(std::max(bins_.size(), other.bins_.size()));
  for (std::size_t i = 0; i < other.bins_.size(); ++i) bins_[i] += other.bins_[i];
  count_ += other.count_;
  sum_s_ += other.sum_s_;
  largest_s_ = std::max(largest_s_, other.largest_s_);
}

Gaps Gaps::shown_by(int tokens) const {
  if (tokens <= 1) return *this;
  Gaps out;
  out.add(0, count_ * (1 - 1.0 / tokens));
  for (std::size_t i = 0; i < bins_.size(); ++i) {
    const double middle_s = smallest_s * std::pow(width, static_cast<double>(i) + 0.5);
    out.add(i > 0 ? tokens * middle_s : 0, bins_[i] / tokens);
  }
  out.sum_s_ = sum_s_;
  return out;
}

double Gaps::quantile_s(double share) const {
  double below = 0;
  for (std::size_t i = 0; i < bins_.size(); ++i) {
    below += bins_[i];
    if (below >= share * count_ && below > 0) return i == 0 ? 0 : smallest_s * std::pow(width, static_cast<double>(i) + 0.5);
  }
  return 0;
}

}  // namespace rehearse::sim
