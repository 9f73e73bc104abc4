// Tensors of a unit that are there, as its steps take them and give them back.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "sim/memory/unit_tensors.hpp"

namespace rehearse::tests {

// What is live after the steps; fails where a tensor is taken twice or given back when it is not there.
class Live {
 public:
  explicit Live(double pairs) : pairs_(pairs) {}
  void arrive(int tensor) { tensors_[tensor] = 0; }
  void act(const std::vector<sim::TensorStep>& steps) {
    for (const sim::TensorStep& step : steps) {
      if (step.kind == sim::TensorStep::Kind::take) {
        EXPECT_TRUE(tensors_.try_emplace(step.tensor, step.bytes + pairs_ * step.per_pair).second) << step.tensor;
      } else if (step.kind == sim::TensorStep::Kind::give || step.kind == sim::TensorStep::Kind::pass_on) {
        EXPECT_EQ(tensors_.erase(step.tensor), 1U) << step.tensor;
      }
      if (step.kind == sim::TensorStep::Kind::pass_on) arrive(step.name);
    }
  }
  [[nodiscard]] double bytes() const {
    double sum = 0;
    for (const auto& [tensor, size] : tensors_) sum += size;
    return sum;
  }
  void leave(int tensor) { tensors_.erase(tensor); }
  [[nodiscard]] bool none() const { return tensors_.empty(); }
  [[nodiscard]] bool none_of(int tensor) const { return !tensors_.contains(tensor); }

 private:
  double pairs_;  // of token and expert, that the rank gets
  std::map<int, double> tensors_;
};

}  // namespace rehearse::tests
