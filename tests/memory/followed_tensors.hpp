// What is live after a unit's tensors have been taken and given, each once, or passed on under another name.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "sim/memory/unit_tensors.hpp"

namespace rehearse::tests {

inline void follow(const std::vector<sim::TensorStep>& steps, std::map<int, double>& live) {
  for (const sim::TensorStep& step : steps) {
    if (step.kind == sim::TensorStep::Kind::take) {
      EXPECT_TRUE(live.try_emplace(step.tensor, step.bytes).second) << step.tensor;
    } else if (step.kind == sim::TensorStep::Kind::give || step.kind == sim::TensorStep::Kind::pass_on) {
      EXPECT_EQ(live.erase(step.tensor), 1U) << step.tensor;
    }
    if (step.kind == sim::TensorStep::Kind::pass_on) live.emplace(step.name, 0);
  }
}

}  // namespace rehearse::tests
