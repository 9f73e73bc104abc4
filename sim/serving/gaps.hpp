// Gaps between the tokens of one answer, counted in bins of 1 %: with runs of passes there are as many gaps as tokens, but few to add.
#pragma once

#include <cstdint>
#include <vector>

namespace rehearse::sim {

class Gaps {
 public:
  void add(double seconds, double count);
  // Passes that get longer evenly, from the first to the last, each with so many gaps.
  void add_run(double first_s, double last_s, double passes, double count);
  void merge(const Gaps& other);
  // The same where a client is shown so many tokens at once: of as many gaps one is as long as all, the others are 0 (assumption: a gap is
  // as long as those beside it).
  [[nodiscard]] Gaps shown_by(int tokens) const;
  [[nodiscard]] double count() const { return count_; }
  [[nodiscard]] double mean_s() const { return count_ > 0 ? sum_s_ / count_ : 0; }
  [[nodiscard]] double quantile_s(double share) const;
  [[nodiscard]] double largest_s() const { return largest_s_; }

 private:
  std::vector<double> bins_;
  double count_ = 0, sum_s_ = 0, largest_s_ = 0;
};

}  // namespace rehearse::sim
