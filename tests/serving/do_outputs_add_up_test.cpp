// What is written over time is what requests went through: integrals of levels, bytes of links, slices of the timeline.
#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <random>

#include "deployments.hpp"
#include "sim/serving/level_series.hpp"

namespace rehearse::tests {
namespace {

using sim::Level;
using sim::LevelSeries;
using sim::ServingRun;
using sim::Stage;

// Rows of any length add up to what was set, are as many as they may be, and forget no peak.
TEST(OutputsAddUp, as_rows_that_become_longer) {
  std::mt19937 random(3);
  for (const double scale_s : {1e-5, 0.03, 70.0}) {
    LevelSeries series;
    double now_s = 0, area = 0, most = 0, level = 0;
    for (int i = 0; i < 20'000; ++i) {
      const double seconds = scale_s * std::uniform_real_distribution<double>(0, 1)(random);
      const double next = std::uniform_int_distribution<int>(0, 1000)(random);
      const bool drifts = i % 3 == 0;
      now_s += seconds;
      area += seconds * (drifts ? (level + next) / 2 : level);
      most = std::max(most, level);
      level = next;
      drifts ? series.drift_to(now_s, {next}) : series.set(now_s, {next});
    }
    double sum = 0, highest = 0;
    for (const LevelSeries::Row& row : series.rows()) {
      sum += row.area[0];
      highest = std::max(highest, row.most[0]);
    }
    EXPECT_NEAR(sum, area, 1e-9 * area);
    EXPECT_EQ(highest, most);
    EXPECT_LE(series.rows().size(), sim::most_level_rows);
    EXPECT_TRUE(now_s < 1 || series.rows().size() > sim::most_level_rows / 2) << series.rows().size();
    EXPECT_EQ(series.end_s(), now_s);
  }
}

class SteadyPrice final : public sim::PassPrice {
 public:
  [[nodiscard]] double seconds(const sim::PassShape& shape) const override {
    return 1e-3 + 2e-5 * (shape.prompt_tokens + shape.decodes) + 1e-7 * shape.context;
  }
  [[nodiscard]] sim::DecodeLine decode(int sequences) const override {
    sim::DecodeLine line;
    line.base_s = 1e-3 + 2e-5 * sequences;
    line.per_token_s = 1e-7;
    return line;
  }
};

sim::ServingSetup drawn_setup(std::mt19937& random, bool apart) {
  const auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  const auto pool = [&](sim::Role role) {
    sim::InstanceRules rules;
    rules.role = role;
    rules.chunked_prefill = pick(0, 1) == 1;
    rules.overflow = pick(0, 1) == 1 ? sim::Overflow::recompute : sim::Overflow::reserve;
    rules.sequences = pick(1, 12);
    rules.tokens = pick(12, 300);
    rules.page = pick(1, 20);
    rules.pages = pick(200, 600) / rules.page + 1;
    return sim::PoolSetup{"pool", rules, std::make_shared<SteadyPrice>(), pick(1, 3)};
  };
  sim::ServingSetup setup;
  setup.records = true;
  setup.pools = {pool(apart ? sim::Role::prefill : sim::Role::both)};
  if (apart) {
    setup.pools.push_back(pool(sim::Role::decode));
    setup.transfers = std::make_shared<OneLink>(OneLink::Habits{.bytes_per_s = 2e4, .before_s = 1e-4, .after_s = 1e-4});
  }
  setup.arrivals.kind = workloads::Arrivals::trace;
  double now_s = 0;
  for (int i = pick(1, 60); i > 0; --i) setup.requests.push_back({now_s += pick(0, 3) * 2e-3, {pick(1, 120), pick(1, 60)}});
  return setup;
}

double integral(const ServingRun& run, Level level, std::size_t first, std::size_t last) {
  double sum = 0;
  for (std::size_t i = first; i < last; ++i) {
    for (const LevelSeries::Row& row : run.record->levels()[i].rows()) sum += row.area[static_cast<std::size_t>(level)];
  }
  return sum;
}

double spent(const ServingRun& run, std::initializer_list<Stage> stages) {
  double sum = 0;
  for (const sim::RequestState& request : run.requests) {
    for (const Stage stage : stages) sum += request.spent_s[static_cast<std::size_t>(stage)];
  }
  return sum;
}

// Little: the time that requests spend somewhere, added up request by request, is the number that is there, added up over time.
TEST(OutputsAddUp, as_requests_that_wait_run_and_are_held) {
  std::mt19937 random(4);
  for (int trial = 0; trial < 2'000; ++trial) {
    SCOPED_TRACE(trial);
    const bool apart = trial % 2 == 0;
    const sim::ServingSetup setup = drawn_setup(random, apart);
    const ServingRun run = simulate_serving(setup);
    const auto senders = static_cast<std::size_t>(setup.pools.front().instances), all = run.record->levels().size();
    const double tolerance = 1e-9 * (1 + run.end_s * static_cast<double>(run.requests.size()));
    EXPECT_NEAR(integral(run, Level::waiting, 0, all), spent(run, {Stage::queued}), tolerance);
    EXPECT_NEAR(integral(run, Level::running, 0, all), spent(run, {Stage::prefilling, Stage::decoding}), tolerance);
    EXPECT_NEAR(integral(run, Level::held, 0, senders), spent(run, {Stage::waiting, Stage::transferring}), tolerance);
    const double expected_s = apart ? spent(run, {Stage::transferring, Stage::decode_queued}) : 0;
    EXPECT_NEAR(integral(run, Level::held, senders, all), expected_s, tolerance);
    double most = 0;
    for (std::size_t i = 0; i < all; ++i) {
      const sim::InstanceRules& rules = setup.pools[i < senders ? 0 : 1].rules;
      for (const LevelSeries::Row& row : run.record->levels()[i].rows()) {
        EXPECT_LE(row.most[static_cast<std::size_t>(Level::pages)], static_cast<double>(rules.pages));
        EXPECT_LE(row.most[static_cast<std::size_t>(Level::running)], static_cast<double>(rules.sequences));
        most = std::max(most, row.most[static_cast<std::size_t>(Level::pages)]);
      }
    }
    EXPECT_GT(most, 0);
    if (HasFailure()) return;
  }
}

// One link for all: it moves the caches of all requests, and is busy no longer than somebody transfers.
TEST(OutputsAddUp, as_bytes_of_a_link_and_slices_of_instances) {
  std::mt19937 random(5);
  for (int trial = 0; trial < 1'000; ++trial) {
    SCOPED_TRACE(trial);
    const sim::ServingSetup setup = drawn_setup(random, true);
    const ServingRun run = simulate_serving(setup);
    double bytes = 0, busy_s = 0;
    std::int64_t moved = 0;
    for (const sim::RequestState& request : run.requests) {
      bytes += request.transfer_bytes;
      moved += request.stage == Stage::done ? 1 : 0;
    }
    const double sliced_s = [&] {
      double sum = 0;
      for (const sim::PassSlice& slice : run.record->pass_slices()) sum += slice.end_s - slice.start_s;
      return sum;
    }();
    for (const ServingRun::Pool& pool : run.pools) {
      for (const sim::InstanceUse& use : pool.instances) busy_s += use.busy_s;
    }
    EXPECT_NEAR(sliced_s, busy_s, 1e-9 * (1 + busy_s));
    if (moved == 0) continue;
    const sim::LinkUse& link = run.record->links().at(0);
    EXPECT_NEAR(link.bytes, bytes, 1e-9 * bytes);
    EXPECT_EQ(link.hand_overs, moved);
    EXPECT_EQ(link.hand_overs, static_cast<std::int64_t>(run.record->hand_over_slices().size()));
    EXPECT_GE(link.busy_s, bytes / 2e4 * (1 - 1e-9));  // it cannot move them faster
    EXPECT_LE(link.busy_s, spent(run, {Stage::transferring}) + 1e-9);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace rehearse::tests
