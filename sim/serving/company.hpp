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
  // has arrivals of its own. `pass_s`: a pass of so many. `bunched`: the share of those that one sees who are there because it is, as the
  // requests of a bunch are (n more stand to n - 1 by 1 + (n - 1) bunched times as much: negative binomial); below 0 they keep apart.
  Company(double each, int instances, const std::function<double(double)>& pass_s, double bunched = 0);

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
  void count(double all, int instances, const std::function<double(double)>& less_likely);
  std::vector<Point> points_;
  double nobody_ = 0;
};

}  // namespace rehearse::sim
