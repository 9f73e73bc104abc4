// A price of a unit between two others, and when two are equal: in every number but those of its copies, which have a share of their own.
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "sim/analytic/unit_cost.hpp"

namespace rehearse::sim {
namespace {

// Where each number of a price stands; a field that is not here is not interpolated.
std::vector<double*> numbers(UnitCost& cost) {
  std::vector<double*> all{&cost.nic_s};
  for (PhaseTimes* phases : std::array{&cost.forward, &cost.backward, &cost.weight, &cost.whole}) {
    for (double& seconds : phases->seconds) all.push_back(&seconds);
  }
  for (std::vector<PieceTimes>* pieces : std::array{&cost.forward_pieces, &cost.backward_pieces}) {
    for (PieceTimes& piece : *pieces)
      all.insert(all.end(), {&piece.dispatch_s, &piece.compute_s, &piece.combine_s, &piece.calls_s, &piece.delayed_s});
  }
  for (WaitedCalls* calls : std::array{&cost.forward_calls, &cost.backward_calls, &cost.weight_calls, &cost.whole_calls}) {
    PortTimes& ports = calls->ports;
    all.insert(all.end(), {&calls->before_s, &calls->after_s, &calls->joined_s, &ports.transfer_s, &ports.scale_up_s, &ports.nic_s,
                           &ports.scale_up_messages_s, &ports.nic_messages_s});
  }
  return all;
}

// Of a unit of two pieces: numbers from `first` on, one more each.
UnitCost counted_from(double first) {
  UnitCost cost;
  cost.forward_pieces.resize(2);
  cost.backward_pieces.resize(2);
  for (double* number : numbers(cost)) *number = first++;
  return cost;
}

TEST(BetweenTwoPrices, LiesEveryNumber) {
  UnitCost from = counted_from(1), to = counted_from(101);
  to.copy_s = 7;
  UnitCost quarter = between(from, to, 0.25);
  double at = 26;  // a quarter of the way from 1 to 101
  for (const double* number : numbers(quarter)) EXPECT_DOUBLE_EQ(*number, at++);
  EXPECT_EQ(quarter.copy_s, 7);
  EXPECT_TRUE(between(from, to, 0).takes_as_long_as(from));
  EXPECT_TRUE(between(from, to, 1).takes_as_long_as(to));
}

TEST(BetweenTwoPrices, IsNothingWhereEveryNumberIsTheSame) {
  const UnitCost one = counted_from(1);
  UnitCost other = one;
  other.copy_s = other.copy_alone_s = other.copy_ports.nic_s = 3;
  EXPECT_TRUE(one.takes_as_long_as(other));
  for (double* number : numbers(other)) {
    const double same = *number;
    *number += 1e-6;
    EXPECT_FALSE(one.takes_as_long_as(other)) << "the number " << same;
    *number = same;
  }
}

}  // namespace
}  // namespace rehearse::sim
