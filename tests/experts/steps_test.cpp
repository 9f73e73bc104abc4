// Several simulated steps: does each route its tokens anew, and is what is said of all of them their mean, their worst peak and their
// drops?
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <numeric>
#include <set>
#include <string>

#include "jobs.hpp"
#include "sim/analytic/predict.hpp"
#include "sim/engine/simulate.hpp"
#include "sim/report/memory_table.hpp"
#include "workloads/expert_loads.hpp"

namespace rehearse::tests {
namespace {

sim::Job job_of(const std::string& routing, int steps, const std::string& more = "") {
  return expert_job(16, "{pp: 2, dp: 8, ep: 8}", "{global: 32, micro: 1, sequence: 2048}",
                    fmt::format("moe: {{routing: {}{}}}\nsimulation: {{steps: {}}}\n", routing, more, steps), 4);
}

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

TEST(Steps, EachRoutesAnewAndTheStepIsTheirMean) {
  for (const char* routing : {"{zipf: 0.8}", "{dirichlet: 0.2, senders: own}", "{zipf: 0.8, senders: sampled}"}) {
    const sim::Job job = job_of(routing, 4);
    for (const sim::StepResult& result : {sim::simulate_in_child(job), sim::predict(job), sim::critical_path(job).result}) {
      ASSERT_EQ(result.step_seconds.size(), 4U) << routing;
      EXPECT_EQ(std::set(result.step_seconds.begin(), result.step_seconds.end()).size(), 4U) << routing;
      EXPECT_NEAR(result.step_s, mean(result.step_seconds), 1e-12 * result.step_s) << routing;
      EXPECT_NEAR(result.mean.total(), result.step_s, 1e-9 * result.step_s) << routing;
    }
    // The first of several is the only one of one.
    EXPECT_EQ(sim::simulate_in_child(job).step_seconds.front(), sim::simulate_in_child(job_of(routing, 1)).step_s) << routing;
    EXPECT_EQ(sim::predict(job).step_seconds.front(), sim::predict(job_of(routing, 1)).step_s) << routing;
  }
}

TEST(Steps, FormulaAndTimelineSpeakOfTheSameSteps) {
  const sim::Job job =
      expert_job(8, "{dp: 8, ep: 8}", "{global: 32, micro: 1, sequence: 4096}", "moe: {routing: {zipf: 0.8}}\nsimulation: {steps: 3}\n", 4);
  const sim::StepResult simulated = sim::simulate_in_child(job), formula = sim::predict(job);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(simulated.step_seconds[i], formula.step_seconds[i], 0.02 * formula.step_seconds[i]) << i;
  }
  EXPECT_NEAR(simulated.memory.fullest()->peak_bytes(), formula.memory.fullest()->peak_bytes(), 1e-3);
  EXPECT_EQ(simulated.memory.fullest()->step, formula.memory.fullest()->step);
}

TEST(Steps, ThePeakIsTheHighestOfAllAndTheHotRankThatOfAll) {
  const sim::Job job = job_of("{dirichlet: 0.2}", 5);
  const sim::StepResult all = sim::simulate_in_child(job);
  double hottest = 0;
  int step = -1;
  for (int s = 0; s < 5; ++s) {
    const workloads::ExpertLoads loads(job.workload, s);
    for (int layer = 0; layer < 4; ++layer) {
      for (int i = 0; i < job.workload.microbatches(); ++i) {
        for (int rank = 0; rank < 8; ++rank) {
          if (loads.received(rank, layer, i) <= hottest) continue;
          hottest = loads.received(rank, layer, i);
          step = s;
        }
      }
    }
  }
  ASSERT_TRUE(all.experts);
  EXPECT_EQ(all.experts->tokens, hottest);
  EXPECT_EQ(all.experts->step, step);
  EXPECT_EQ(all.experts->layers.size(), 5U * 4U);
  const sim::StepResult first = sim::simulate_in_child(job_of("{dirichlet: 0.2}", 1));
  EXPECT_GE(all.memory.fullest()->peak_bytes(), first.memory.fullest()->peak_bytes());
}

TEST(Steps, OfBalancedRoutingAreAlike) {
  const sim::StepResult result = sim::simulate_in_child(job_of("balanced", 3));
  ASSERT_EQ(result.step_seconds.size(), 3U);
  EXPECT_NEAR(result.step_seconds[2], result.step_seconds[0], 1e-9 * result.step_seconds[0]);
}

// A file with two steps: the second is twice as hot.
TEST(Steps, OfAFileAreItsSteps) {
  std::string rows;
  for (int step = 0; step < 2; ++step) {
    for (int e = 0; e < 16; ++e) rows += fmt::format("[{}, 0, 0, {}, {}],", step, e, e < 2 ? 1 + 2 * step : 1);
  }
  rows.pop_back();
  const auto job = [&](int steps) {
    return expert_job(8, "{dp: 8, ep: 8}", "{global: 8, micro: 1, sequence: 4096}",
                      fmt::format("moe: {{routing: {{counts: [{}]}}}}\nsimulation: {{steps: {}}}\n", rows, steps), 1);
  };
  const sim::StepResult result = sim::simulate_in_child(job(2));
  EXPECT_GT(result.step_seconds[1], result.step_seconds[0]);
  EXPECT_EQ(result.experts->step, 1);
  EXPECT_EQ(result.memory.fullest()->step, 1);
  EXPECT_THROW(job(3), config::InputError);
}

// Numbers with a decimal point as #.
std::string without_sizes(const std::string& text) {
  std::string out, number;
  const auto flush = [&] {
    out += number.find('.') == std::string::npos ? number : "#";
    number.clear();
  };
  for (const char c : text) {
    if (std::isdigit(static_cast<unsigned char>(c)) != 0 || (c == '.' && !number.empty())) {
      number += c;
    } else {
      flush();
      out += c;
    }
  }
  flush();
  return out;
}

// Who runs out of memory, when, where and of what.
TEST(Shortage, NamesRankTimeOperationLayerMicrobatchAndStep) {
  std::string rows;
  for (int step = 0; step < 2; ++step) {
    for (int layer = 0; layer < 2; ++layer) {
      for (int i = 0; i < 4; ++i) {
        for (int e = 0; e < 16; ++e) {
          rows += fmt::format("[{}, {}, {}, {}, {}],", step, layer, i, e, e / 2 == 5 && step == 1 && i == 2 && layer == 1 ? 5 : 1);
        }
      }
    }
  }
  rows.pop_back();
  sim::Job job = expert_job(8, "{dp: 8, ep: 8}", "{global: 32, micro: 1, sequence: 4096}",
                            fmt::format("moe: {{routing: {{counts: [{}]}}}}\nsimulation: {{steps: 2}}\n", rows), 2);
  job.system.gpu.memory_bytes = 4.0 * 1024 * 1024 * 1024;
  const std::string what = sim::shortage(sim::simulate_in_child(job));
  EXPECT_EQ(without_sizes(what),
            "simulated: does not fit: rank 5 (stage 0) needs # of # GiB at # ms, in B layer 1, micro-batch 2, step 1; # GiB are "
            "missing; the largest "
            "part is framework, # GiB");
  EXPECT_NE(sim::shortage(sim::predict(job)).find("rank 5 (stage 0)"), std::string::npos) << sim::shortage(sim::predict(job));
  EXPECT_NE(sim::shortage(sim::predict(job)).find("micro-batch 2, step 1;"), std::string::npos) << sim::shortage(sim::predict(job));
}

std::vector<sim::TimelineEvent> events_of(const sim::Timeline& timeline) {
  std::vector<sim::TimelineEvent> events;
  timeline.events->each([&](const sim::TimelineEvent& event) { events.push_back(event); });
  return events;
}

int arrows_of(const sim::Timeline& timeline) {
  int arrows = 0;
  timeline.events->each_arrow([&](const sim::TimelineEvent&, const sim::TimelineEvent&) { ++arrows; });
  return arrows;
}

// One timeline of all steps, one behind the other.
TEST(Steps, StandOneBehindTheOtherOnTheTimeline) {
  const sim::Simulation all = sim::critical_path(job_of("{zipf: 0.8}", 3)), first = sim::critical_path(job_of("{zipf: 0.8}", 1));
  const std::vector<sim::TimelineEvent> events = events_of(all.timeline), events_of_first = events_of(first.timeline);
  ASSERT_EQ(events.size(), 3 * events_of_first.size());
  EXPECT_EQ(arrows_of(all.timeline), 3 * arrows_of(first.timeline));
  EXPECT_TRUE(std::ranges::is_sorted(events, {}, &sim::TimelineEvent::start_s));
  double end = 0;
  for (const sim::TimelineEvent& event : events) {
    end = std::max(end, event.end_s);
    if (event.collective >= 0) {
      EXPECT_LT(event.collective, static_cast<int>(all.timeline.collectives.size()));
    }
  }
  EXPECT_NEAR(end, std::accumulate(all.result.step_seconds.begin(), all.result.step_seconds.end(), 0.0), 1e-9 * end);
  for (std::size_t i = 0; i < events_of_first.size(); ++i) EXPECT_EQ(events[i].name, events_of_first[i].name);
  for (std::uint32_t rank = 0; rank < all.timeline.ranks.size(); ++rank)
    EXPECT_TRUE(std::ranges::is_sorted(all.timeline.events->memory_of(rank), {}, &sim::MemorySample::at_s));
}

}  // namespace
}  // namespace rehearse::tests
