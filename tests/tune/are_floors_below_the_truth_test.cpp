// Floors under step and memory hold for every plan of random jobs and spaces, each alone.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sim/tune/floors.hpp"
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

// A stack that adopts the first micro-batch's gradients adds up those of the others alone; one with autocast casts where ZeRO-3 does not.
// Whatever plan came before, a floor is that of the plan itself.
TEST(Floors, AreThoseOfAPlanByItself) {
  for (const char* stack : {"torch-fsdp", "torchtitan", "transformers"}) {
    const sim::Job job = sim::read_job(
        config::Node::load_text(fmt::format("model: {{layers: 4, hidden: 1024, heads: 8, ffn: 4096, vocab: 32000, activation: swiglu}}\n"
                                            "cluster: dgx-h100-ndr400\ngpus: 8\nparallel: {{dp: 8}}\n"
                                            "batch: {{global: 64, micro: 1, sequence: 2048}}\nsoftware: {}\n",
                                            stack),
                                "floors.yaml"),
        "floors");
    std::vector<workloads::Workload> plans;
    for (const int global : {64, 8}) {
      for (const int zero_stage : {3, 2, 1, 0}) {
        workloads::Workload& plan = plans.emplace_back(job.workload);
        plan.batch.global = global;
        plan.optimizer.zero_stage = zero_stage;
      }
    }
    sim::Floors remembers(job);
    for (const workloads::Workload& plan : plans) {
      EXPECT_EQ(remembers.step_s(plan), sim::Floors(job).step_s(plan)) << stack << plan.batch.global << " " << plan.optimizer.zero_stage;
    }
  }
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
