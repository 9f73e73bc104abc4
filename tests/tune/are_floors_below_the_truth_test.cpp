// Floors under step and memory hold for every plan of random jobs and spaces, each alone.
#include <gtest/gtest.h>

#include "sim/tune/worker.hpp"
#include "tests/tune/spaces.hpp"

namespace rehearse::tests {
namespace {

constexpr double by_order_of_sums = 1e-9;  // relative

TEST(Floors, AreNeverAboveTheStepAndThePeak) {
  RandomSpaces random(5);
  double closest_step = 0, closest_memory = 0;
  int plans = 0;
  for (int i = 0; i < 400; ++i) {
    const std::string text = random.next(1, 400);
    const Tuned tuned(text);
    const sim::GoalValues goals(tuned.spec, tuned.space.base_of(0));
    sim::Bases bases(tuned.space, 64);
    for (std::uint64_t point = 0; point < tuned.space.size(); ++point) {
      sim::Base& base = bases.of(point);
      const sim::Cursor cursor(tuned.space, base.job, point, point + 1);
      if (cursor.refused()) continue;
      const sim::Candidate plan = base.worth(cursor, goals, 1).candidate;
      const double step = base.floors.step_s(cursor.workload());
      const double needed = base.floors.needed_bytes(cursor.workload());
      ASSERT_LE(step, plan.step_s * (1 + by_order_of_sums)) << text << point << " " << cursor.workload().schedule << " "
                                                            << cursor.workload().parallel.pp << " m " << cursor.workload().microbatches();
      ASSERT_LE(needed, plan.needed_bytes * (1 + by_order_of_sums)) << text << point;
      ASSERT_GE(plan.needed_bytes, plan.peak_bytes);
      closest_step = std::max(closest_step, step / plan.step_s);
      closest_memory = std::max(closest_memory, needed / plan.needed_bytes);
      ++plans;
    }
  }
  EXPECT_GT(plans, 5'000);
  EXPECT_GT(closest_step, 0.9);  // a floor of nothing would be worth nothing
  EXPECT_GT(closest_memory, 0.5);
  RecordProperty("plans", plans);
}

TEST(Rows, NeedMoreWithALargerMicroBatch) {
  RandomSpaces random(6);
  int compared = 0;
  for (int i = 0; i < 600; ++i) {
    std::string text = random.next(1, 40);
    if (text.find("batch.micro") == std::string::npos) text += "    batch.micro: [1, 2, 4]\n";
    const Tuned tuned(text);
    const sim::GoalValues goals(tuned.spec, tuned.space.base_of(0));
    sim::Bases bases(tuned.space, 64);
    const auto micro =
        static_cast<std::size_t>(std::ranges::find(tuned.space.axes(), "batch.micro", &sim::Axis::key) - tuned.space.axes().begin());
    const std::uint64_t inner = tuned.space.points_below(micro + 1), row = tuned.space.points_below(micro);
    for (std::uint64_t point = 0; point < tuned.space.size(); ++point) {
      if (point % row >= inner) continue;  // the first value of the row
      double before = 0;
      int micro_before = 0;
      for (std::uint64_t other = point; other < point - point % row + row; other += inner) {
        sim::Base& base = bases.of(other);
        const sim::Cursor cursor(tuned.space, base.job, other, other + 1);
        if (cursor.refused()) continue;
        const double needed = base.worth(cursor, goals, 1).candidate.needed_bytes;
        if (cursor.workload().batch.micro > micro_before && sim::needs_no_less_than_smaller(cursor.workload())) {
          ++compared;
          ASSERT_GE(needed * (1 + by_order_of_sums), before) << text << other;
        }
        before = needed;
        micro_before = cursor.workload().batch.micro;
      }
    }
  }
  EXPECT_GT(compared, 500);
}

}  // namespace
}  // namespace rehearse::tests
