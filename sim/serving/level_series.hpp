// Quantities over time as rows of equal length with their mean and maximum: at most `most_level_rows` however long it goes on, since two
// rows become one, and rows twice as long, whenever there would be more. So the rows add up to the same integral at any length.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

namespace rehearse::sim {

inline constexpr std::size_t most_level_rows = 1000;

class LevelSeries {
 public:
  static constexpr std::size_t quantities = 4;
  using Levels = std::array<double, quantities>;
  struct Row {
    Levels area{};  // integral over the row's time
    Levels most{};
  };

  // All are 0 at time 0 and hold until they are set again. Times must not fall.
  void set(double now_s, const Levels& levels) {
    advance(now_s, now_);
    now_ = levels;
  }
  // They have changed evenly since they were set last, to these.
  void drift_to(double now_s, const Levels& levels) {
    advance(now_s, levels);
    now_ = levels;
  }

  [[nodiscard]] const std::vector<Row>& rows() const { return rows_; }
  [[nodiscard]] double row_s() const { return row_s_; }  // a power of two
  [[nodiscard]] double end_s() const { return last_s_; }
  [[nodiscard]] const Levels& now() const { return now_; }

 private:
  void advance(double now_s, const Levels& then);
  void fold();

  std::vector<Row> rows_;
  double row_s_ = 0x1p-10, last_s_ = 0;
  Levels now_{};
};

}  // namespace rehearse::sim
