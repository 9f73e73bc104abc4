#include "sim/serving/level_series.hpp"

#include <algorithm>
#include <cmath>

namespace rehearse::sim {

void LevelSeries::fold() {
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    if (i % 2 == 0) {
      rows_[i / 2] = rows_[i];
      continue;
    }
    for (std::size_t k = 0; k < quantities; ++k) {
      rows_[i / 2].area[k] += rows_[i].area[k];
      rows_[i / 2].most[k] = std::max(rows_[i / 2].most[k], rows_[i].most[k]);
    }
  }
  rows_.resize((rows_.size() + 1) / 2);
  row_s_ *= 2;
}

void LevelSeries::advance(double now_s, const Levels& then) {
  if (!(now_s > last_s_)) return;
  while (now_s > row_s_ * static_cast<double>(most_level_rows)) fold();
  const double from_s = last_s_;
  for (auto row = static_cast<std::size_t>(from_s / row_s_); last_s_ < now_s; ++row) {
    const double to_s = std::min(now_s, row_s_ * static_cast<double>(row + 1));
    if (!(to_s > last_s_)) continue;
    if (row >= rows_.size()) rows_.resize(row + 1);
    for (std::size_t k = 0; k < quantities; ++k) {
      const auto at = [&](double time_s) { return now_[k] + (then[k] - now_[k]) * ((time_s - from_s) / (now_s - from_s)); };
      const double begins = at(last_s_), ends = at(to_s);
      rows_[row].area[k] += (to_s - last_s_) * (begins + ends) / 2;
      rows_[row].most[k] = std::max({rows_[row].most[k], begins, ends});
    }
    last_s_ = to_s;
  }
}

}  // namespace rehearse::sim
