// How many sequences decode beside one, by formula: requests come at random, so that all instances together hold a Poisson number.
#pragma once

#include <vector>

namespace rehearse::sim {

class Company {
 public:
  // So many on an instance on average. Of n instances that share their requests evenly each holds a like part of the number of all; 1: each
  // has arrivals of its own.
  Company(double each, int instances);

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
  std::vector<Point> points_;
  double nobody_ = 0;
};

}  // namespace rehearse::sim
