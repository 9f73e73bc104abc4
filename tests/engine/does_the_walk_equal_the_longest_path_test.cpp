// Where stages differ the formula walks the slots of the schedule: the same end as the longest path through the operations, and, where the
// closed form is exact, the same as the closed form.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "pipelines.hpp"
#include "sim/analytic/slot_walk.hpp"
#include "workloads/schedule.hpp"

namespace rehearse::tests {
namespace {

constexpr double relative = 1e-9;

double longest_span_s(const sim::StageSpans& spans, bool staggered) {
  double longest = 0;
  for (std::size_t s = 0; s < spans.end_s.size(); ++s) longest = std::max(longest, spans.end_s[s] - (staggered ? spans.start_s[s] : 0));
  return longest;
}

TEST(SlotWalk, EqualsTheLongestPathForUnevenStagesAndMessages) {
  std::mt19937 random(3);
  std::uniform_real_distribution<double> seconds(0.2, 1.5);
  for (const char* schedule : {"gpipe", "1f1b", "interleaved-1f1b"}) {
    for (int i = 0; i < 60; ++i) {
      const int p = 2 + static_cast<int>(random() % 7),
                v = schedule == std::string("interleaved-1f1b") ? 2 + static_cast<int>(random() % 3) : 1;
      const int m = p * (1 + static_cast<int>(random() % 4));
      const double hop = i % 3 == 0 ? 0 : 0.3 * seconds(random);
      std::vector<double> forward, backward;
      for (int s = 0; s < p; ++s) {
        forward.push_back(seconds(random));
        backward.push_back(seconds(random));
      }
      sim::PipelineTimes times;
      times.microbatches = m;
      for (int s = 0; s < p; ++s) {
        times.forward_s.append(std::vector<double>(v, forward[s]));
        times.backward_s.append(std::vector<double>(v, backward[s]));
      }
      times.hop_s.assign(p, hop);
      const PricedPipeline job = priced(
          pipeline(schedule, p, v, m), [&](int stage, bool is_forward) { return (is_forward ? forward : backward)[stage]; }, hop);
      const double path = longest_path_s(job);
      EXPECT_NEAR(longest_span_s(sim::walk_slots(job.workload, times), false), path, relative * path)
          << schedule << " p " << p << " v " << v << " m " << m << " hop " << hop;
    }
  }
}

// Closed forms of split schedules, at home where F = B = W and messages are free.
TEST(SlotWalk, EqualsTheClosedFormOfUniformSplitSchedules) {
  for (const char* schedule : {"zb-h1", "zb-h2", "zb-v", "dualpipe"}) {
    for (const int p : {2, 4, 8}) {
      const bool two = schedule == std::string("zb-v") || schedule == std::string("dualpipe");
      const workloads::Workload workload = pipeline(schedule, p, schedule == std::string("zb-v") ? 2 : 1, 4 * p);
      sim::PipelineTimes times;
      times.microbatches = 4 * p;
      for (auto* all : {&times.forward_s, &times.backward_s, &times.weight_s}) all->assign(p, std::vector<double>(two ? 2 : 1, 0.7));
      times.hop_s.assign(p, 0);
      const double closed = sim::PipelineFormulaRegistry::get(schedule).seconds(times);
      const bool staggered = workloads::ScheduleRegistry::get(schedule).staggers_steps();
      EXPECT_NEAR(longest_span_s(sim::walk_slots(workload, times), staggered), closed, relative * closed) << schedule << " p " << p;
    }
  }
}

}  // namespace
}  // namespace rehearse::tests
