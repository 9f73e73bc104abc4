// A pipeline that is full repeats its rounds: walking one of them until all is in step, and adding the time of the others, is the same as
// walking every slot.
#include <gtest/gtest.h>

#include <array>
#include <random>

#include "sim/analytic/slot_walk.hpp"

namespace rehearse::tests {
namespace {

constexpr double relative = 1e-9;

workloads::Workload pipeline_of(const char* schedule, int p, int v, int m, bool pairs) {
  workloads::Workload workload;
  workload.schedule = schedule;
  workload.parallel.pp = p;
  workload.parallel.vpp = v;
  workload.batch.global = m;
  workload.batch.micro = 1;
  workload.overlap.ep = pairs;
  return workload;
}

class RandomTimes {
 public:
  explicit RandomTimes(unsigned seed) : random_(seed) {}
  int below(int end) { return static_cast<int>(random_() % static_cast<unsigned>(end)); }

  // Stages that differ by much, by little, or in their ends alone, as embedding and head do.
  sim::PipelineTimes next(const workloads::PipelineShape& shape, bool pairs) {
    const double spread = std::array{0.0, 0.01, 1.0}[static_cast<std::size_t>(below(3))];
    sim::PipelineTimes times;
    times.microbatches = shape.microbatches;
    times.blocking = below(2) == 0;
    const double hop = std::array{0.0, 0.05, 0.7}[static_cast<std::size_t>(below(3))];
    for (int s = 0; s < shape.stages; ++s) {
      const double ends = s == 0 || s + 1 == shape.stages ? 0.2 : 0;
      std::vector<double> forward, backward, weight, whole;
      for (int c = 0; c < shape.chunks; ++c) {
        forward.push_back(1 + ends + spread * part_(random_));
        backward.push_back(1.1 + ends + spread * part_(random_));
        weight.push_back(0.9 + spread * part_(random_));
        whole.push_back(backward.back() + weight.back());
      }
      times.forward_s.append(forward);
      times.backward_s.append(backward);
      times.weight_s.append(weight);
      times.whole_s.append(whole);
      times.hop_s.push_back(hop * (1 + spread * part_(random_)));
    }
    if (pairs) add_pairs(times, shape);
    return times;
  }

 private:
  void add_pairs(sim::PipelineTimes& times, const workloads::PipelineShape& shape) {
    for (int i = 0; i < shape.stages * shape.chunks * shape.chunks; ++i)
      times.pairs.push_back({2.5 + 0.3 * part_(random_), 0.1 * part_(random_), 0.2 * part_(random_), 0.1 * part_(random_)});
  }
  std::mt19937 random_;
  std::uniform_real_distribution<double> part_{0, 1};
};

void expect_same(const sim::StageSpans& one, const sim::StageSpans& all, const std::string& text) {
  for (std::size_t s = 0; s < all.end_s.size(); ++s) {
    ASSERT_NEAR(one.start_s[s], all.start_s[s], relative * all.end_s[s]) << text << " stage " << s;
    ASSERT_NEAR(one.end_s[s], all.end_s[s], relative * all.end_s[s]) << text << " stage " << s;
    for (std::size_t c = 0; c < all.completed_s[s].size(); ++c)
      ASSERT_NEAR(one.completed_s[s][c], all.completed_s[s][c], relative * all.end_s[s]) << text << " stage " << s << " chunk " << c;
  }
}

struct Case {
  const char* schedule;
  bool interleaves = false, pairs = false, folds = true;
};

class Rounds : public testing::TestWithParam<Case> {};

TEST_P(Rounds, AreTheWholeWalk) {
  const Case& one = GetParam();
  RandomTimes random(7);
  int folded = 0, walked = 0;
  for (int i = 0; i < 400; ++i) {
    const int p = one.schedule == std::string("dualpipe") ? 2 * (1 + random.below(4)) : 2 + random.below(8);
    const int v = one.interleaves ? 2 + random.below(4) : one.schedule == std::string("zb-v") ? 2 : 1;
    const int m = one.interleaves ? p * (1 + random.below(20)) : 1 + random.below(150);
    const workloads::Workload workload = pipeline_of(one.schedule, p, v, m, one.pairs);
    const workloads::PipelineShape shape = workloads::pipeline_shape(workload);
    if (!workloads::ScheduleRegistry::get(one.schedule).refusal(shape).empty()) continue;
    const sim::PipelineTimes times = random.next(shape, one.pairs);
    const std::string text = std::string(one.schedule) + " p " + std::to_string(p) + " v " + std::to_string(v) + " m " + std::to_string(m);
    expect_same(sim::walk_slots(workload, times), sim::walk_all_slots(workload, times), text);
    const sim::SlotOrder order(workload);
    const int enough = one.interleaves ? 6 * p : 3 * p + 4;
    if (one.folds && m >= enough) {
      EXPECT_GT(order.rounds(), 1) << text;
    }
    folded += order.rounds() > 1 ? 1 : 0;
    ++walked;
  }
  EXPECT_GT(walked, 50);
  EXPECT_EQ(folded > walked / 3, one.folds) << folded << " of " << walked;
}

INSTANTIATE_TEST_SUITE_P(Schedules, Rounds,
                         testing::Values(Case{"1f1b"}, Case{"interleaved-1f1b", true}, Case{"zb-h1"}, Case{"zb-h2"}, Case{"zb-v"},
                                         Case{"1f1b", false, true}, Case{"interleaved-1f1b", true, true},
                                         Case{"gpipe", false, false, false}, Case{"dualpipe", false, false, false}));

// A search asks for the walk with messages alone, predict() for both: the step is the same to the last bit.
TEST_P(Rounds, AreTheSameWhateverElseIsAskedFor) {
  const Case& one = GetParam();
  RandomTimes random(8);
  for (int i = 0; i < 200; ++i) {
    const int p = 2 * (1 + random.below(4)), v = one.interleaves ? 3 : one.schedule == std::string("zb-v") ? 2 : 1;
    const workloads::Workload workload = pipeline_of(one.schedule, p, v, p * (1 + random.below(20)), one.pairs);
    const workloads::PipelineShape shape = workloads::pipeline_shape(workload);
    if (!workloads::ScheduleRegistry::get(one.schedule).refusal(shape).empty()) continue;
    const sim::PipelineTimes times = random.next(shape, one.pairs);
    const sim::SlotOrder order(workload);
    sim::SlotWalk alone, both;
    alone.walk(order, times, sim::SlotWalk::What::with_messages);
    both.walk(order, times, sim::SlotWalk::What::both);
    ASSERT_EQ(alone.spans().end_s, both.spans().end_s) << one.schedule << " p " << p << " v " << v << " m " << shape.microbatches;
    sim::PipelineTimes no_messages = times;
    no_messages.hop_s.assign(times.hop_s.size(), 0.0);
    alone.walk(order, no_messages, sim::SlotWalk::What::with_messages);
    ASSERT_EQ(alone.spans().end_s, both.without_messages().end_s) << one.schedule;
  }
}

// What is at its peak in a round is so in all of them: an order with more of them is the same steps.
TEST(Rounds, AreSharedByAnyNumberOfMicrobatches) {
  for (const int m : {40, 44, 64, 400}) {
    const sim::SlotOrder few(pipeline_of("interleaved-1f1b", 4, 3, 40, false)), own(pipeline_of("interleaved-1f1b", 4, 3, m, false));
    const auto shared = few.with_microbatches(m);
    ASSERT_TRUE(shared.has_value());
    EXPECT_EQ(shared->rounds(), own.rounds());
    EXPECT_EQ(shared->typical_microbatches(), own.typical_microbatches());
    EXPECT_EQ(shared->steps(), own.steps());
  }
  EXPECT_FALSE(sim::SlotOrder(pipeline_of("interleaved-1f1b", 4, 3, 40, false)).with_microbatches(42).has_value());
}

}  // namespace
}  // namespace rehearse::tests
