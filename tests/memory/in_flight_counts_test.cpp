// Equation (5): how many model chunks' activations a stage holds at its peak, as each schedule says, against a replay of its own order.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "workloads/schedule.hpp"

namespace rehearse::workloads {
namespace {

// A chunk is held from its forward to its last backward slot.
int replayed_peak(const std::vector<Slot>& order) {
  std::map<std::pair<int, int>, int> backwards_left;
  for (const Slot& slot : order) {
    if (slot.kind != Slot::Kind::forward) ++backwards_left[{slot.microbatch, slot.chunk}];
  }
  int held = 0, peak = 0;
  for (const Slot& slot : order) {
    if (slot.kind == Slot::Kind::forward) {
      peak = std::max(peak, ++held);
    } else if (--backwards_left[{slot.microbatch, slot.chunk}] == 0) {
      --held;
    }
  }
  EXPECT_EQ(held, 0);
  return peak;
}

// Every stage; returns 1 when the schedule takes this shape.
int check_shape(const std::string& name, const PipelineShape& shape) {
  const Schedule& schedule = ScheduleRegistry::get(name);
  if (!schedule.refusal(shape).empty()) return 0;
  for (int stage = 0; stage < shape.stages; ++stage) {
    EXPECT_EQ(schedule.peak_in_flight(shape, stage), replayed_peak(schedule.order(shape, stage)))
        << name << " p " << shape.stages << " v " << shape.chunks << " m " << shape.microbatches << " stage " << stage;
  }
  return 1;
}

TEST(InFlightCounts, EqualAReplayOfEverySchedule) {
  for (const std::string& name : ScheduleRegistry::names()) {
    int shapes = 0;
    for (int p = 1; p <= 16; ++p) {
      for (int v = 1; v <= 8; ++v) {
        for (const int m : {1, 2, 3, p, 2 * p, 2 * p + 1, 4 * p}) shapes += check_shape(name, {p, v, m});
      }
    }
    EXPECT_GT(shapes, 0) << name << " takes none of the shapes";
  }
}

}  // namespace
}  // namespace rehearse::workloads
