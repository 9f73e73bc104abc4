// Every registered schedule runs every micro-batch and chunk once forward and once backward, in an order that its dependencies allow, and
// holds as many activations as it says.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "workloads/schedule.hpp"

namespace rehearse::workloads {
namespace {

std::vector<PipelineShape> shapes(const Schedule& schedule) {
  std::vector<PipelineShape> all;
  for (int p = 1; p <= 16; ++p)
    for (int v = 1; v <= 8; ++v)
      for (const int m : {1, 2, p, 2 * p, 3 * p, 4 * p + 1}) {
        if (schedule.refusal({p, v, m}).empty()) all.push_back({p, v, m});
      }
  return all;
}

class EverySchedule : public ::testing::TestWithParam<std::string> {
 protected:
  const Schedule& schedule() const { return ScheduleRegistry::get(GetParam()); }
};

TEST_P(EverySchedule, RunsEachChunkOnceInAFeasibleOrder) {
  for (const PipelineShape& shape : shapes(schedule())) {
    for (int stage = 0; stage < shape.stages; ++stage) {
      std::map<std::pair<int, int>, std::vector<Slot::Kind>> done;
      for (const Slot& slot : schedule().order(shape, stage)) done[{slot.microbatch, slot.chunk}].push_back(slot.kind);
      // A mirroring schedule leads each micro-batch through one of the two chunks.
      ASSERT_EQ(done.size(), static_cast<std::size_t>(shape.microbatches) * shape.chunks / (schedule().mirrors() ? 2 : 1));
      const std::vector whole{Slot::Kind::forward, Slot::Kind::backward};
      const std::vector split{Slot::Kind::forward, Slot::Kind::backward_input, Slot::Kind::backward_weight};
      for (const auto& [what, kinds] : done) {
        ASSERT_TRUE(kinds == whole || (schedule().splits_backward() && kinds == split));
        ASSERT_GE(schedule().position(shape, what.first, {stage, what.second}), 0);
      }
    }
  }
}

TEST_P(EverySchedule, FindsItsWayBothWays) {
  for (const PipelineShape& shape : shapes(schedule())) {
    for (const int microbatch : {0, shape.microbatches - 1}) {
      for (int position = 0; position < schedule().depth(shape); ++position) {
        const Location at = schedule().location(shape, microbatch, position);
        ASSERT_EQ(schedule().position(shape, microbatch, at), position);
        ASSERT_TRUE(at.stage >= 0 && at.stage < shape.stages && at.chunk >= 0 && at.chunk < shape.chunks);
      }
    }
  }
}

TEST_P(EverySchedule, HoldsTheActivationsOfItsFormula) {
  for (const PipelineShape& shape : shapes(schedule())) {
    for (int stage = 0; stage < shape.stages; ++stage) {
      int held = 0, most = 0;
      for (const Slot& slot : schedule().order(shape, stage)) {
        if (slot.kind == Slot::Kind::forward) most = std::max(most, ++held);
        if (slot.kind == Slot::Kind::backward || slot.kind == Slot::Kind::backward_weight) --held;
      }
      EXPECT_EQ(most, schedule().peak_in_flight(shape, stage))
          << "p " << shape.stages << " v " << shape.chunks << " m " << shape.microbatches << " stage " << stage;
      EXPECT_EQ(held, 0);
    }
  }
}

TEST_P(EverySchedule, WarmsUpAsLongAsItSays) {
  for (const PipelineShape& shape : shapes(schedule())) {
    for (int stage = 0; stage < shape.stages; ++stage) {
      const std::vector<Slot> order = schedule().order(shape, stage);
      const auto backward = std::ranges::find_if(order, [](const Slot& slot) { return slot.kind != Slot::Kind::forward; });
      EXPECT_EQ(backward - order.begin(), schedule().warmup_forwards(shape, stage));
    }
  }
}

TEST_P(EverySchedule, TakesSomeShape) { EXPECT_FALSE(shapes(schedule()).empty()); }

std::string identifier(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = "s_" + info.param;
  std::ranges::replace(name, '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Registered, EverySchedule, ::testing::ValuesIn(ScheduleRegistry::names()), identifier);

// Equation (5) of MoFa and Narayanan et al. 2021, written out.
TEST(InFlight, FormulasOfThePapers) {
  EXPECT_EQ(ScheduleRegistry::get("gpipe").peak_in_flight({4, 1, 10}, 2), 10);
  EXPECT_EQ(ScheduleRegistry::get("1f1b").peak_in_flight({8, 1, 32}, 0), 8);
  EXPECT_EQ(ScheduleRegistry::get("1f1b").peak_in_flight({8, 1, 3}, 0), 3);
  EXPECT_EQ(ScheduleRegistry::get("interleaved-1f1b").peak_in_flight({4, 2, 8}, 0), 2 * 3 + 1 * 4 + 1);
  EXPECT_EQ(ScheduleRegistry::get("zb-h1").peak_in_flight({4, 1, 12}, 3), 4);     // the memory of 1F1B's first stage, on every stage
  EXPECT_EQ(ScheduleRegistry::get("zb-h2").peak_in_flight({4, 1, 12}, 3), 7);     // 2p - 1
  EXPECT_EQ(ScheduleRegistry::get("zb-v").peak_in_flight({4, 2, 12}, 3), 8);      // p of 1F1B's, in halves
  EXPECT_EQ(ScheduleRegistry::get("dualpipe").peak_in_flight({4, 2, 12}, 3), 5);  // p + 1
}

}  // namespace
}  // namespace rehearse::workloads
