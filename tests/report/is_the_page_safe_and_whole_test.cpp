#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "config/input_error.hpp"
#include "sim/report/page/chart.hpp"
#include "sim/report/page/page.hpp"
#include "sim/report/page/step_results.hpp"
#include "sim/report/page/style.hpp"
#include "tests/report/hand_made.hpp"
#include "workloads/phase.hpp"

namespace rehearse::sim::page {
namespace {

namespace fs = std::filesystem;

TEST(Escaped, LeavesNoMarkup) {
  EXPECT_EQ(escaped("</script><img src=x onerror=\"a('&')\">"), "&lt;/script&gt;&lt;img src=x onerror=&quot;a('&amp;')&quot;&gt;");
  EXPECT_EQ(escaped("a\xff"
                    "b\x01"
                    "c"),
            "a\xEF\xBF\xBD"
            "b\xEF\xBF\xBD"
            "c")
      << "what is not UTF-8 and what no page may hold";
}

TEST(Numbers, SayWhereTheyStandInTheResult) {
  const Json result = {{"results", {{"critical path", {{"step_s", 1.25}}}}}, {"none", nullptr}};
  EXPECT_EQ(number(result, "/results/critical path/step_s", Unit::milliseconds),
            R"(<data value="1.25" data-at="/results/critical path/step_s">1250.0 ms</data>)");
  EXPECT_EQ(number(result, "/none", Unit::count), "-");
  EXPECT_EQ(number(result, "/not/there", Unit::count), "-");
}

TEST(Numbers, AreWrittenForPeople) {
  EXPECT_EQ(in_words(-1e-9, Unit::milliseconds), "0.000 ms");
  EXPECT_EQ(in_words(9.9876, Unit::milliseconds), "9987.6 ms");
  EXPECT_EQ(in_words(21.40172, Unit::milliseconds), "21.4017 s");
  EXPECT_EQ(in_words(58228, Unit::plain), "58228");
  EXPECT_EQ(in_words(58228.4, Unit::plain), "58228");
  EXPECT_EQ(in_words(39.8123, Unit::plain), "39.81");
  EXPECT_EQ(in_words(0.9035, Unit::percent), "90.35 %");
  EXPECT_EQ(in_words(-1e-9, Unit::percent), "0.00 %");
}

TEST(Style, HasAColourForEveryPhase) {
  for (const workloads::PhaseNames& phase : workloads::phase_names) {
    const std::string rule = "." + css_of_words(std::string(phase.name)) + " { --c: ";
    EXPECT_NE(style.find(rule), std::string_view::npos) << rule;
  }
}

TEST(Ticks, AreRoundAndInside) {
  std::mt19937 random(3);
  for (int round = 0; round < 1000; ++round) {
    const double from = std::uniform_real_distribution(-100.0, 100.0)(random);
    const double to = from + std::exp(std::uniform_real_distribution(-20.0, 20.0)(random));
    const std::vector<double> values = ticks(from, to, 8);
    EXPECT_LE(values.size(), 9U);
    for (const double value : values) {
      EXPECT_GE(value, from - 1e-9 * std::abs(from));
      EXPECT_LE(value, to + 1e-9 * std::abs(to));
    }
  }
}

TEST(Stairs, KeepTheHighestOfWhatIsDrawnOnOnePixel) {
  std::vector<Point> points;
  points.reserve(100000);
  for (int i = 0; i < 100000; ++i) points.push_back({i / 1e5, i == 54321 ? 100.0 : 1.0});
  const Scale x{0, 1, 0, 1000};
  const Scale y{0, 100, 100, 0};
  const std::string path = stairs(points, x, y);
  EXPECT_NE(path.find("V0"), std::string::npos) << "the only high value is on the page";
  EXPECT_LT(path.size(), 100U);
}

TEST(Timeline, OperationsThatTouchAreOneBarAndEveryPhaseKeepsItsOwn) {
  TimelineSketch sketch;
  for (long long i = 0; i < 1000; ++i) sketch.add(0, 1, i % 2 == 0 ? "compute" : "recompute", i * 1000, (i + 1) * 1000, "op");
  sketch.add(0, 1, "compute", 5'000'000, 6'000'000, "the long one");
  const TimelineView view = sketch.view();
  ASSERT_EQ(view.rows.size(), 1U);
  EXPECT_EQ(view.rows[0].bars.size(), 3U) << "compute twice, recompute once: the two are nearer than half a pixel";
  EXPECT_EQ(view.operations, 1001U);
  EXPECT_DOUBLE_EQ(view.end_s, 6e-3);
  ASSERT_FALSE(view.named.empty());
  EXPECT_EQ(view.named.back().name, "the long one");
}

TEST(Timeline, TooManyBarsAreCutFromTheShortest) {
  TimelineSketch sketch;
  for (long long rank = 0; rank < 20; ++rank) {
    for (long long i = 0; i < 900; ++i)
      sketch.add(static_cast<int>(rank), 1, "compute", i * 1'000'000, i * 1'000'000 + (rank + 1) * 1000, "op");
  }
  const TimelineView view = sketch.view();
  std::size_t left = 0;
  for (const TimelineView::Row& row : view.rows) left += row.bars.size();
  EXPECT_LE(left, 5000U);
  EXPECT_EQ(left + view.bars_left_out, view.bars);
  EXPECT_TRUE(view.rows.front().bars.empty()) << "rank 0 has the shortest";
  EXPECT_EQ(view.rows.back().bars.size(), 900U);
}

TEST(Timeline, OfAFileIsThatOfTheTimeline) {
  const Timeline timeline = hand_made_timeline();
  std::istringstream file(written("trace", Report(hand_made_job()).add(&timeline)));
  const TimelineView of_file = view_of(file, "timeline.json");
  const TimelineView direct = view_of(timeline);
  ASSERT_EQ(of_file.rows.size(), direct.rows.size());
  EXPECT_EQ(of_file.end_s, direct.end_s);
  for (std::size_t i = 0; i < direct.rows.size(); ++i) {
    EXPECT_EQ(of_file.rows[i].rank_name, direct.rows[i].rank_name);
    EXPECT_EQ(of_file.rows[i].stream, direct.rows[i].stream);
    EXPECT_EQ(of_file.rows[i].bars.size(), direct.rows[i].bars.size());
  }
}

std::string refusal(const std::function<void()>& act) {
  try {
    act();
  } catch (const config::InputError& error) {
    return error.what();
  }
  return "nothing was refused";
}

TEST(Page, FilesThatAreNotAsWrittenAreRefusedByLine) {
  const std::string deep(100000, '[');
  const std::vector<std::string> lines{R"({"ph":"X"})",
                                       R"({"ph":"X","pid":"a","ts":0,"dur":1})",
                                       R"({"ph":"X",)",
                                       R"({"ph":"X","name":"F)",
                                       R"({"ph":"X","name":3})",
                                       R"({"ph":"X","name":"\q"})",
                                       R"({"ph":"X","args":{"x":)" + deep,
                                       R"({"ph":"X","name":"F","pid":0,"ts":1e999,"dur":1})",
                                       R"({"ph":"X","name":"F","pid":0,"ts":0,"dur":1} {})"};
  for (const std::string& line : lines) {
    std::istringstream in("{\n" + line + "\n");
    EXPECT_NE(refusal([&] { static_cast<void>(view_of(in, "timeline.json")); }).find("timeline.json:2"), std::string::npos)
        << line.substr(0, 80);
  }
}

TEST(Page, EventsAreReadWithEscapesAndBlanks) {
  std::istringstream in(
      "{\n"
      R"({"ph":"X", "name" : "of \"A\\", "pid": 3,"tid":1,"ts":1.5,"dur":2,"cat":null,"args":{"phase":"compute","x":[1,{"y":true}]}},)"
      "\n");
  const TimelineView view = view_of(in, "timeline.json");
  ASSERT_EQ(view.named.size(), 1U);
  EXPECT_EQ(view.named[0].name, R"(of "A\)");
  EXPECT_EQ(view.rows[0].rank, 3);
  EXPECT_EQ(view.rows[0].bars[0].phase, "compute");
  EXPECT_DOUBLE_EQ(view.end_s, 3.5e-6);
}

TEST(Page, FoldersWithoutAResultAreRefused) {
  EXPECT_NE(refusal([] { static_cast<void>(input_of(fs::path("/nowhere"))); }).find("'/nowhere' is not a folder"), std::string::npos);
  const fs::path folder = fs::path(testing::TempDir()) / "page-empty";
  fs::create_directories(folder);
  EXPECT_NE(refusal([&] { static_cast<void>(input_of(folder)); }).find("holds nothing"), std::string::npos);
  std::ofstream(folder / "result.json") << "{";
  EXPECT_NE(refusal([&] { static_cast<void>(input_of(folder)); }).find("not JSON"), std::string::npos);
  fs::remove_all(folder);
}

TEST(Page, OfTheHandMadeComparisonHasItsSectionsTwiceTheSame) {
  const Comparison comparison = hand_made_comparison();
  const Timeline timeline = hand_made_timeline();
  Report report(hand_made_job());
  report.own(StepResults{{&comparison.analytic, &comparison.simulated, &comparison.critical}})
      .add(&comparison)
      .add(&timeline)
      .own(PageWanted{});
  const std::string page = written("report-page", report);
  for (const std::string id : {"step", "phases", "timeline", "collectives", "comparison", "job"}) {
    EXPECT_NE(page.find("<section id=\"" + id + "\""), std::string::npos) << id;
  }
  EXPECT_EQ(page.find("<section id=\"whole-job\""), std::string::npos);
  EXPECT_NE(page.find("uneven stages, and &quot;warm-up&quot; waits"), std::string::npos);
  EXPECT_EQ(page, written("report-page", report));
}

// It is of no operation: bars end before the step does.
TEST(Page, SaysThatTheAllocatorsTimeIsNotDrawn) {
  const Timeline timeline = hand_made_timeline();
  const auto says = [&](double allocator_s) {
    StepResult step = hand_made_step("simulated");
    for (RankResult& rank : step.ranks) rank.phases[Phase::allocator] = allocator_s;
    lengthen(step, allocator_s);
    Report report(hand_made_job());
    report.own(StepResults{{&step}}).add(&timeline).own(PageWanted{});
    return written("report-page", report).find("what the allocator takes comes on top of the step and is not drawn") != std::string::npos;
  };
  EXPECT_TRUE(says(0.1));
  EXPECT_FALSE(says(0));
}

}  // namespace
}  // namespace rehearse::sim::page
