// A program that embeds the reporters may have set its own locale: reports are for programs, and their numbers are written one way.
#include <gtest/gtest.h>

#include <locale>
#include <sstream>

#include "tests/report/hand_made.hpp"

namespace rehearse::sim {
namespace {

// As in de_DE, without needing it installed: 1.234,5.
class German final : public std::numpunct<char> {
  [[nodiscard]] char do_decimal_point() const override { return ','; }
  [[nodiscard]] char do_thousands_sep() const override { return '.'; }
  [[nodiscard]] std::string do_grouping() const override { return "\3"; }
};

class InGerman {
 public:
  InGerman() : before_(std::locale::global(std::locale(std::locale::classic(), new German))) {}
  InGerman(const InGerman&) = delete;
  InGerman& operator=(const InGerman&) = delete;
  ~InGerman() { std::locale::global(before_); }

 private:
  std::locale before_;
};

TEST(AreReportsTheSameInEveryLocale, all_reporters) {
  const Comparison comparison = hand_made_comparison();
  const Timeline timeline = hand_made_timeline();
  Report report = Report(hand_made_job()).own(StepResults{{&comparison.analytic, &comparison.simulated}}).add(&timeline).add(&comparison);
  report.job.gpus = 16384;
  int reporters = 0;
  for (const std::string& name : ReporterRegistry::names()) {
    if (!ReporterRegistry::get(name).applies(report)) continue;
    const std::string classic = written(name, report);
    const InGerman german;
    std::ostringstream sees_the_locale;
    sees_the_locale << 1234.5;
    ASSERT_EQ(sees_the_locale.str(), "1.234,5");
    EXPECT_EQ(written(name, report), classic) << name;
    ++reporters;
  }
  EXPECT_GE(reporters, 5);
}

}  // namespace
}  // namespace rehearse::sim
