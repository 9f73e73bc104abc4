#include "sim/federated/price_polygon.hpp"

#include <algorithm>
#include <cmath>

namespace rehearse::federated {
namespace {

PerResource mixed(const PerResource& a, const PerResource& b, double share_of_b) {
  PerResource out{};
  for (int i = 0; i < max_resources; ++i) out[i] = a[i] + (b[i] - a[i]) * share_of_b;
  return out;
}

// Twice the area of a triangle, seen along the third price.
double twice_area(const PerResource& a, const PerResource& b, const PerResource& c) {
  return std::abs((b[0] - a[0]) * (c[1] - a[1]) - (c[0] - a[0]) * (b[1] - a[1]));
}

}  // namespace

PricePolygon::PricePolygon(const std::vector<int>& resources) {
  for (const int resource : resources) {
    PerResource corner{};
    corner[resource] = 1;
    corners_.push_back(corner);
  }
}

PerResource PricePolygon::centre() const {
  PerResource sum{};
  double area = 0;
  for (std::size_t i = 2; i < corners_.size(); ++i) {
    const double part = twice_area(corners_[0], corners_[i - 1], corners_[i]);
    for (int k = 0; k < max_resources; ++k) sum[k] += part * (corners_[0][k] + corners_[i - 1][k] + corners_[i][k]) / 3;
    area += part;
  }
  constexpr double flat = 1e-26;
  if (area > flat) {
    for (double& x : sum) x /= area;
    return sum;
  }
  PerResource low = corners_.front(), high = low;
  for (const PerResource& corner : corners_) {
    for (int k = 0; k < max_resources; ++k) {
      low[k] = std::min(low[k], corner[k]);
      high[k] = std::max(high[k], corner[k]);
    }
  }
  return mixed(low, high, 0.5);
}

double PricePolygon::extent() const {
  double extent = 0;
  for (int k = 0; k < max_resources; ++k) {
    const auto [low, high] = std::ranges::minmax(corners_, {}, [k](const PerResource& corner) { return corner[k]; });
    extent = std::max(extent, high[k] - low[k]);
  }
  return extent;
}

void PricePolygon::keep_above(const PerResource& through, const PerResource& ascent) {
  const auto height = [&](const PerResource& corner) { return dot(corner, ascent) - dot(through, ascent); };
  std::vector<PerResource> kept;
  for (std::size_t i = 0; i < corners_.size(); ++i) {
    const PerResource &from = corners_[i], &to = corners_[(i + 1) % corners_.size()];
    const double a = height(from), b = height(to);
    if (a >= 0) kept.push_back(from);
    if ((a > 0 && b < 0) || (a < 0 && b > 0)) kept.push_back(mixed(from, to, a / (a - b)));
  }
  if (!kept.empty()) corners_ = std::move(kept);
}

}  // namespace rehearse::federated
