// How many sequences decode beside one, by formula: requests come at random and share what the instances do, so that of the number of all
// n has the chance of n - 1 times the rate at which they come, over that at which n end (processor sharing, whatever the answers' lengths).
// Were passes as long for any number it would be Poisson's; where more sequences make them longer it is spread further.
#pragma once

#include <functional>
#include <vector>

namespace rehearse::sim {

class Company {
 public:
  // So many on an instance on average. Of n instances that share their requests evenly each holds a like part of the number of all; 1: each
  // has arrivals of its own. `pass_s`: a pass of so many.
  Company(double each, int instances, const std::function<double(double)>& pass_s);

  // Mean of what f says of the others beside a sequence.
  template <class F>
  [[nodiscard]] double mean(F f) const {
    double sum = 0;
    for (const Point& point : points_) sum += point.chance * f(point.others);
    return sum;
  }
  [[nodiscard]] double nobody() const { return nobody_; }  // chance that an instance has none

 private:
  struct Point {
    double others = 0, chance = 0;
  };
  void add(double all, double chance, int instances);
  void count(double all, int instances, const std::function<double(double)>& ended_per_s);
  std::vector<Point> points_;
  double nobody_ = 0;
};

}  // namespace rehearse::sim
