// Units beside what their replicas exchange: slots that come back and rounds that repeat are the walk of every slot.
#include <gtest/gtest.h>

#include <array>
#include <random>

#include "sim/analytic/unit_walk.hpp"
#include "sim/job/job.hpp"

namespace rehearse::tests {
namespace {

constexpr double unit_rounding = 1e-9;

struct Drawn {
  workloads::Workload workload;
  std::vector<sim::UnitTerms> units;
  std::vector<std::vector<const sim::UnitTerms*>> of_chunks;  // [stage, chunk]
  std::vector<sim::ChunkTerms> chunks;
  std::vector<sim::StageTerms> stages;
  sim::ReplicaRules rules;
  std::vector<double> hop_s;
};

class Draws {
 public:
  explicit Draws(unsigned seed) : random_(seed) {}
  int below(int end) { return static_cast<int>(random_() % static_cast<unsigned>(end)); }
  double part() { return std::uniform_real_distribution<double>(0, 1)(random_); }

  Drawn next(const char* schedule, int p, int v, int m) {
    Drawn drawn;
    drawn.workload.schedule = schedule;
    drawn.workload.parallel.pp = p;
    drawn.workload.parallel.vpp = v;
    drawn.workload.batch.global = m;
    drawn.workload.batch.micro = 1;
    drawn.workload.overlap.pp = below(2) == 0;
    draw_rules(drawn);
    const double exchange = std::array{0.1, 0.9, 3.0}[static_cast<std::size_t>(below(3))];
    for (int u = 0; u < 4; ++u) drawn.units.push_back(unit(exchange));
    draw_stages(drawn, p, v);
    const double hop = std::array{0.0, 0.05, 0.7}[static_cast<std::size_t>(below(3))];
    for (int s = 0; s < p; ++s) drawn.hop_s.push_back(hop * part());
    return drawn;
  }

 private:
  void draw_rules(Drawn& drawn) {
    workloads::ReplicaSync& sync = drawn.rules.sync;
    sync.ranks = 4;
    sync.shards_parameters = sync.reduce_each_microbatch = true;
    const int beside = 1 + below(3);
    sync.overlap_gradients = (beside & 1) != 0;
    sync.overlap_parameters = (beside & 2) != 0;
    if (below(2) == 0) drawn.rules.pair = {1 + 0.5 * part(), 1 + 0.5 * part()};
    drawn.rules.overhead_s = below(2) == 0 ? 0.2 : 0;
  }
  // Layers of a kind, with others at the ends; some chunks have none.
  void draw_stages(Drawn& drawn, int p, int v) {
    const int layers = 1 + below(6);
    for (int i = 0; i < p * v; ++i) {
      std::vector<const sim::UnitTerms*>& chunk = drawn.of_chunks.emplace_back(layers, &drawn.units[0]);
      if (i == 0) chunk.insert(chunk.begin(), &drawn.units[1]);
      if (i + 1 == p * v) chunk.push_back(&drawn.units[2]);
      if (below(12) == 0) chunk.assign(static_cast<std::size_t>(below(3)), &drawn.units[3]);
    }
    for (const auto& chunk : drawn.of_chunks) drawn.chunks.emplace_back(chunk);
    for (int s = 0; s < p; ++s) {
      drawn.stages.emplace_back().chunks =
          std::span(drawn.chunks).subspan(static_cast<std::size_t>(s) * static_cast<std::size_t>(v), static_cast<std::size_t>(v));
    }
  }
  sim::UnitTerms unit(double exchange) {
    sim::UnitTerms terms;
    terms.gather_s = exchange * (0.8 + 0.2 * part());
    terms.reduce_s = exchange * (0.8 + 0.2 * part());
    for (sim::MetPass& pass : terms.passes) {
      pass.parts.compute_s = 0.5 + 0.5 * part();
      pass.parts.calls_s = below(2) == 0 ? 0.3 * part() : 0;
      pass.parts.ports.transfer_s = 0.7 * pass.parts.calls_s;
      pass.meets = pass.parts.calls_s > 0 && below(2) == 0;
      pass.met = {1 + part(), 1 + part()};
    }
    return terms;
  }
  std::mt19937 random_;
};

// Asked only of pipelines that copy activations.
const workloads::Compiled& any_plan() {
  static const workloads::Compiled plan = workloads::compile(sim::load_job({"llama2-70b-128-a100", {}, {}}).workload);
  return plan;
}

sim::UnitSpans walked(sim::UnitWalks& walks, const Drawn& drawn, const sim::SlotOrder& order) {
  return walks.walk(drawn.workload, any_plan(), drawn.stages, drawn.rules, {}, drawn.hop_s, order);
}

struct Kind {
  const char* schedule;
  int chunks = 1;
};

class Units : public testing::TestWithParam<Kind> {
 protected:
  template <class Check>
  void on_random_pipelines(const Check& check) {
    const Kind& kind = GetParam();
    Draws draws(17);
    for (int i = 0; i < 300; ++i) {
      const int p = 2 + draws.below(7), m = p * (1 + draws.below(24));
      Drawn drawn = draws.next(kind.schedule, p, kind.chunks, m);
      if (!workloads::ScheduleRegistry::get(kind.schedule).refusal(workloads::pipeline_shape(drawn.workload)).empty()) continue;
      sim::UnitWalks walks;
      walks.begin(drawn.units, drawn.stages, drawn.rules);
      check(walks, drawn, sim::SlotOrder(drawn.workload), std::string(kind.schedule) + " " + std::to_string(i));
    }
  }
};

TEST_P(Units, AreTheWholeWalkInRounds) {
  int folded = 0;
  on_random_pipelines([&](sim::UnitWalks& walks, const Drawn& drawn, const sim::SlotOrder& order, const std::string& text) {
    const sim::UnitSpans one = walked(walks, drawn, order), all = walked(walks, drawn, sim::SlotOrder::in_full(drawn.workload));
    folded += order.rounds() > 1 ? 1 : 0;
    for (std::size_t s = 0; s < drawn.stages.size(); ++s) {
      const double near = unit_rounding * all.spans.end_s[s];
      ASSERT_NEAR(one.spans.start_s[s], all.spans.start_s[s], near) << text << " stage " << s;
      ASSERT_NEAR(one.spans.end_s[s], all.spans.end_s[s], near) << text << " stage " << s;
      ASSERT_NEAR(one.exchanged_s[s], all.exchanged_s[s], near) << text << " stage " << s;
    }
  });
  EXPECT_GT(folded, 20);
}

// The same bits from what another walk left behind, or from nothing.
TEST_P(Units, ForgetNothingThatMatters) {
  on_random_pipelines([&](sim::UnitWalks& walks, Drawn& drawn, const sim::SlotOrder& order, const std::string& text) {
    (void)walked(walks, drawn, order);  // with messages
    drawn.hop_s.assign(drawn.hop_s.size(), 0);
    const sim::UnitSpans after = walked(walks, drawn, order);
    ASSERT_EQ(walks.without_messages(drawn.workload, any_plan(), drawn.stages, drawn.rules, {}, order).spans.end_s, after.spans.end_s)
        << text;
    sim::UnitWalks others;
    others.begin(drawn.units, drawn.stages, drawn.rules);
    const sim::UnitSpans anew = walked(others, drawn, order);
    ASSERT_EQ(anew.spans.end_s, after.spans.end_s) << text;
    ASSERT_EQ(anew.exchanged_s, after.exchanged_s) << text;
    // Of other units nothing is taken over.
    for (sim::MetPass& pass : drawn.units[0].passes) pass.parts.compute_s *= 1.5;
    walks.begin(drawn.units, drawn.stages, drawn.rules);
    others = {};
    others.begin(drawn.units, drawn.stages, drawn.rules);
    ASSERT_EQ(walked(walks, drawn, order).spans.end_s, walked(others, drawn, order).spans.end_s) << text;
  });
}

INSTANTIATE_TEST_SUITE_P(Schedules, Units, testing::Values(Kind{"1f1b"}, Kind{"interleaved-1f1b", 3}, Kind{"zb-h1"}, Kind{"zb-h2"}));

}  // namespace
}  // namespace rehearse::tests
