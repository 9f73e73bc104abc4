// Where a number comes to rest that grows with itself: the x with x = f(x), f growing, by secants; one answer wherever it begins. Where
// that does not end, f jumps over x: between bounds from either side of which f leads in, by halves, to the place of the jump.
#pragma once

#include <algorithm>
#include <cmath>

namespace rehearse::sim {

class Settling {
 public:
  // How steep f is there: as far as is known.
  explicit Settling(double begin, double slope = 0) : at_(begin), slope_(slope) {}
  [[nodiscard]] double slope() const { return slope_; }
  [[nodiscard]] double at() const { return at_; }  // where f is asked next
  [[nodiscard]] bool jumps(double within) const { return std::isfinite(high_) && high_ - low_ <= within * (1 + high_); }
  // From x to where f was last seen to lead up, half the way of their logarithms.
  void step_back(double x) { at_ = std::sqrt(std::max(1.0, below_) * x); }
  // That f of x leads there; x: at(), or as far as can be asked.
  void take(double x, double leads_to) {
    // Closer together they say less of f than of what else changed meanwhile.
    constexpr double apart = 0.003, steepest = 0.98, furthest = 6;
    if (asked_ > 0 && std::abs(x - last_x_) > apart * (1 + x)) slope_ = std::clamp((leads_to - last_f_) / (x - last_x_), 0.0, steepest);
    last_x_ = x;
    last_f_ = leads_to;
    at_ = x + std::max((leads_to - x) / (1 - slope_), -x / 2);
    if (leads_to > x) {
      below_ = x;
      at_ = std::min(at_, x + furthest * (leads_to - x));
    }
    if (++asked_ < patient_rounds) return;
    (leads_to > x ? low_ : high_) = x;
    if (at_ > low_ && at_ < high_ && asked_ % 2 == 0) return;
    at_ = std::isfinite(high_) ? (low_ + high_) / 2 : std::max(leads_to, 2 * low_);
  }

 private:
  static constexpr int patient_rounds = 20;
  double at_, slope_, below_ = 0, low_ = 0, high_ = INFINITY, last_x_ = 0, last_f_ = 0;
  int asked_ = 0;
};

}  // namespace rehearse::sim
