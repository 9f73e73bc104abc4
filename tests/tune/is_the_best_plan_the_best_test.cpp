// The search against brute force on random small spaces: every point read as a document of its own and predicted.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "tests/tune/spaces.hpp"

namespace rehearse::tests {
namespace {

using sim::Candidate;

struct Alone {
  Candidate plan;
  std::uint64_t twins = 0;
  std::vector<bool> differs;  // [axis] whether any twin has another value
};

// Twins are the same in every number that anybody sees: the first of the space stands for all. By comparing all with all.
std::vector<Alone> without_twins(const Tuned& tuned, const std::vector<Candidate>& best_first) {
  std::vector<Alone> alone;
  const auto same = [](double a, double b) { return sim::rounded(a) == sim::rounded(b); };
  for (const Candidate& plan : best_first) {
    const auto twin = std::ranges::find_if(alone, [&](const Alone& other) {
      return std::ranges::equal(plan.goals, other.plan.goals, same) && same(plan.step_s, other.plan.step_s) &&
             same(plan.peak_bytes, other.plan.peak_bytes) && same(plan.needed_bytes, other.plan.needed_bytes) &&
             plan.layout == other.plan.layout;
    });
    if (twin == alone.end()) {
      alone.push_back({plan, 0, std::vector<bool>(tuned.space.axes().size())});
      continue;
    }
    ++twin->twins;
    for (std::size_t axis = 0; axis < twin->differs.size(); ++axis)
      twin->differs[axis] = twin->differs[axis] || tuned.space.digit(plan.point, axis) != tuned.space.digit(twin->plan.point, axis);
  }
  return alone;
}

struct BruteForce {
  std::vector<Candidate> fit;
  std::vector<Alone> alone;  // of which no two are twins
  std::uint64_t refused = 0, unfit = 0;
  double least_lack = std::numeric_limits<double>::infinity();

  explicit BruteForce(const Tuned& tuned) {
    for (std::uint64_t point = 0; point < tuned.space.size(); ++point) {
      const auto answer = answer_at(tuned, point);
      if (!answer) {
        ++refused;
      } else if (answer->fits) {
        fit.push_back(answer->candidate);
      } else {
        ++unfit;
        least_lack = std::min(least_lack, answer->candidate.lacks_bytes);
      }
    }
    std::ranges::sort(fit, sim::better);
    alone = without_twins(tuned, fit);
  }

  // Plans that no other is better than in one goal and no worse in the others: by comparing all with all.
  [[nodiscard]] std::vector<std::uint64_t> front(std::size_t goals) const {
    std::vector<std::uint64_t> points;
    for (const Candidate& one : fit) {
      bool beaten = false;
      for (const Candidate& other : fit) {
        bool worse = false, less = false, same = true;
        for (std::size_t i = 0; i < goals; ++i) {
          const double mine = sim::rounded(one.goals[i]), theirs = sim::rounded(other.goals[i]);
          worse = worse || theirs > mine;
          less = less || theirs < mine;
          same = same && theirs == mine;
        }
        if (&one != &other && ((!worse && less) || (same && sim::dominates(other, one, goals)))) beaten = true;
      }
      if (!beaten) points.push_back(one.point);
    }
    std::ranges::sort(points);
    return points;
  }
};

void expect_twins(const Tuned& tuned, const Candidate& found, const Alone& expected, const std::string& text) {
  ASSERT_EQ(found.twins, expected.twins) << text;
  std::uint64_t bit = 1;
  for (std::size_t axis = 0; axis < expected.differs.size(); ++axis) {
    if (tuned.space.axes()[axis].values.size() < 2) continue;
    ASSERT_EQ((found.free_axes & bit) != 0, expected.differs[axis]) << text << tuned.space.axes()[axis].key;
    bit <<= 1U;
  }
}

void expect_same(const Candidate& found, const Candidate& expected, std::size_t goals, const std::string& text) {
  ASSERT_EQ(found.point, expected.point) << text;
  ASSERT_EQ(found.step_s, expected.step_s) << text;
  ASSERT_EQ(found.peak_bytes, expected.peak_bytes) << text;
  ASSERT_EQ(found.needed_bytes, expected.needed_bytes) << text;
  for (std::size_t i = 0; i < goals; ++i) ASSERT_EQ(found.goals[i], expected.goals[i]) << text << "goal " << i;
}

void expect_best(const Tuned& tuned, const BruteForce& truth, const sim::Found& found, const std::string& text) {
  const std::size_t goals = tuned.spec.goals.size();
  ASSERT_EQ(found.points, tuned.space.size()) << text;
  std::uint64_t refused = 0;
  for (const std::uint64_t count : found.refused) refused += count;
  ASSERT_EQ(refused, truth.refused) << text;
  ASSERT_EQ(found.best.all().size(), std::min(truth.alone.size(), static_cast<std::size_t>(tuned.spec.keep))) << text;
  for (std::size_t i = 0; i < found.best.all().size(); ++i) {
    expect_same(found.best.all()[i], truth.alone[i].plan, goals, text);
    expect_twins(tuned, found.best.all()[i], truth.alone[i], text);
  }
  std::vector<std::uint64_t> front;
  for (const Candidate& one : found.front.all()) front.push_back(one.point);
  std::ranges::sort(front);
  ASSERT_EQ(front, truth.front(goals)) << text;
  if (truth.fit.empty() && truth.unfit > 0) {
    ASSERT_TRUE(found.nearest.has_value()) << text;
    ASSERT_EQ(found.nearest->lacks_bytes, truth.least_lack) << text;
  }
}

// Every plan that was evaluated, not only those that are kept.
void expect_every(const BruteForce& truth, const sim::Found& found, std::size_t goals, const std::string& text) {
  std::map<std::uint64_t, const Candidate*> evaluated;
  for (const sim::Evaluated& one : found.every) {
    if (one.fit == sim::Fit::yes) evaluated.emplace(one.candidate.point, &one.candidate);
  }
  ASSERT_EQ(evaluated.size(), truth.fit.size()) << text;
  for (const Candidate& expected : truth.fit) {
    const auto at = evaluated.find(expected.point);
    ASSERT_NE(at, evaluated.end()) << text;
    expect_same(*at->second, expected, goals, text);
    if (testing::Test::HasFatalFailure()) return;
  }
}

// The best with each value of a key, and with each two of two keys, as far as the bounds promise it: up to a quarter worse than a good
// plan.
void expect_values(const Tuned& tuned, const BruteForce& truth, const sim::Search& search, const sim::Found& found,
                   const std::string& text) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const double promised = search.threshold().found ? search.threshold().of_value() : infinity;
  const auto expect = [&](double value, double expected, double apart) {
    if (expected == infinity) {
      ASSERT_EQ(value, infinity) << text;
      return;
    }
    ASSERT_GE(value, expected - apart * std::abs(expected)) << text;
    if (expected <= promised) {
      ASSERT_LE(value, expected + apart * std::abs(expected)) << text;
    }
  };
  const std::size_t axes = tuned.space.axes().size();
  for (std::size_t axis = 0; axis < axes; ++axis) {
    std::vector<double> best(tuned.space.axes()[axis].values.size(), infinity);
    for (const Candidate& one : truth.fit)
      best[tuned.space.digit(one.point, axis)] = std::min(best[tuned.space.digit(one.point, axis)], one.goals[0]);
    for (std::size_t i = 0; i < best.size(); ++i)
      expect(found.of_value[axis][i] ? found.of_value[axis][i]->goals[0] : infinity, best[i], 2e-12);  // of equals it need not be the least
  }
  const std::vector<std::size_t>& drawn = found.pairs.axes();
  for (std::size_t i = 0; i < drawn.size(); ++i) {
    for (std::size_t j = i + 1; j < drawn.size(); ++j) {
      std::map<std::pair<std::size_t, std::size_t>, double> best;
      for (const Candidate& one : truth.fit) {
        const auto values = std::pair(tuned.space.digit(one.point, drawn[i]), tuned.space.digit(one.point, drawn[j]));
        const auto known = best.try_emplace(values, infinity).first;
        known->second = std::min(known->second, one.goals[0]);
      }
      for (const auto& [values, goal] : best) expect(found.pairs.best(drawn[i], values.first, drawn[j], values.second), goal, 0);
    }
  }
}

// What the environment says instead.
int said(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::atoi(text) : otherwise;
}

void search_spaces(int seed, int spaces, int most_points) {
  RandomSpaces random(static_cast<unsigned>(seed));
  int with_answer = 0;
  std::uint64_t cut = 0, points = 0, plans = 0, most = 0;
  for (int i = 0; i < spaces; ++i) {
    const std::string text = random.next(1 + i % 3, most_points);
    const Tuned tuned(text);
    const BruteForce truth(tuned);
    with_answer += truth.fit.empty() ? 0 : 1;
    points += tuned.space.size();
    most = std::max(most, tuned.space.size());
    plans += truth.fit.size() + truth.unfit;
    const sim::Search exhaustive(tuned.space, tuned.spec, sim::Bounds::none(), true);
    const sim::Found all = exhaustive.run(1);
    expect_best(tuned, truth, all, text);
    expect_every(truth, all, tuned.spec.goals.size(), text);
    expect_values(tuned, truth, exhaustive, all, text);
    ASSERT_EQ(all.evaluated + truth.refused, tuned.space.size()) << text;
    for (const sim::Bounds& bounds : {sim::Bounds{true, true, true, 0}, sim::Bounds{true, false, false, 0}, sim::Bounds{true, false, false},
                                      sim::Bounds{false, true, false}, sim::Bounds{false, false, true, 0}}) {
      const sim::Search search(tuned.space, tuned.spec, bounds);
      const sim::Found found = search.run(1);
      expect_best(tuned, truth, found, text);
      expect_values(tuned, truth, search, found, text);
      for (const std::uint64_t count : found.cut) cut += count;
    }
  }
  EXPECT_GT(with_answer, spaces / 4);
  if (spaces >= 12) {  // of fewer there may be none that bounds cut
    EXPECT_GT(cut, 0U);
  }
  fmt::print("{} spaces of up to {} points, {} in all, of which {} are plans\n", spaces, most, points, plans);
}

TEST(Tuning, FindsWhatBruteForceFinds) { search_spaces(1, 60, 100); }
// 200 spaces of up to 5,000 points: docs/soak.md.
TEST(Tuning, FindsWhatBruteForceFindsInLargerSpaces) {
  search_spaces(said("REHEARSE_TUNE_SEED", 6), said("REHEARSE_TUNE_SPACES", 12), said("REHEARSE_TUNE_POINTS", 900));
}

}  // namespace
}  // namespace rehearse::tests
