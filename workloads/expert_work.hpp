// What the experts of a rank compute on the tokens of one layer and micro-batch, by how many those are: the operators are made when asked
// for.
#pragma once

#include <vector>

#include "workloads/operators.hpp"

namespace rehearse::workloads {

struct ExpertWork {
  RoutedExperts what;
  bool again = false;  // what is computed once more before backward, else the pass itself
  double pairs = 0;    // (token, expert) pairs
  bool operator==(const ExpertWork&) const = default;
};

[[nodiscard]] std::vector<Operator> operators_of(const Workload& workload, const ExpertWork& work);

// Whether weight gradients come after what is sent back has begun to travel.
[[nodiscard]] inline bool delays_weights(const Workload& workload, const RoutedExperts& what) {
  return workload.overlap.delay_wgrad && what.weight_gradients;
}

// Operators of the experts on `pairs` (token, expert) pairs, shared out evenly among the rank's experts: one pass.
[[nodiscard]] BlockProgram expert_operators(const Workload& workload, double pairs);
// The same when `experts` is expert_operators() of the work's pairs already.
[[nodiscard]] std::vector<Operator> operators_of(const Workload& workload, const ExpertWork& work, const BlockProgram& experts);

}  // namespace rehearse::workloads
