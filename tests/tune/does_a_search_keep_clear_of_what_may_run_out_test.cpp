// `tune: {fits: surely}`: plans that would fit although they needed the most that measured runs of their stack needed beyond the formula.
#include <gtest/gtest.h>

#include "tests/cli/program.hpp"
#include "tests/tune/spaces.hpp"

namespace rehearse::tests {
namespace {

std::string nanotron_space(const std::string& fits) {
  return "model: llama2-7b\ncluster: dgx-h100-ndr400\ngpus: 16\nsoftware: nanotron\nschedule: 1f1b\nparallel: {sp: true}\n"
         "batch: {global: 64, micro: 1, sequence: 4352}\noptimizer: {sharding: zero1}\n"
         "tune: {goal: [step], fits: " +
         fits + ", keep: 1000, space: {parallel.tp: [2, 4], parallel.pp: [1, 2, 4], batch.micro: [1, 2, 4, 8]}}\n";
}

sim::Found found_in(const Tuned& tuned, const sim::Bounds& bounds) { return sim::Search(tuned.space, tuned.spec, bounds).run(1); }

TEST(KeepClear, WhatSurelyFitsIsWhatFitsWithTheMarginOfItsStack) {
  const Tuned surely(nanotron_space("surely")), likely(nanotron_space("likely"));
  const sim::Job job = surely.space.base_of(0);
  const double factor = sim::MeasuredErrors().most_need(job).factor;
  ASSERT_GT(factor, 1.05);
  const sim::Found narrow = found_in(surely, sim::Bounds::none()), wide = found_in(likely, sim::Bounds::none());
  std::uint64_t may_run_out = 0;
  std::vector<std::uint64_t> kept;
  for (const sim::Candidate& plan : wide.best.all()) {
    if (plan.needed_bytes * factor <= sim::usable_bytes(job.system.gpu)) {
      kept.push_back(plan.point);
    } else {
      ++may_run_out;
    }
  }
  EXPECT_GT(may_run_out, 0U);
  EXPECT_EQ(narrow.may_run_out, may_run_out);
  EXPECT_EQ(narrow.unfit, wide.unfit + may_run_out);
  EXPECT_EQ(wide.may_run_out, 0U);
  std::vector<std::uint64_t> best;
  for (const sim::Candidate& plan : narrow.best.all()) best.push_back(plan.point);
  EXPECT_EQ(best, kept);
}

TEST(KeepClear, TheAnswerSaysHowManyMayRunOut) {
  const cli::TemporaryFolder folder;
  std::ofstream(folder.path() / "job.yaml") << nanotron_space("surely");
  const cli::Outcome surely = cli::run_shell("$rehearse tune job.yaml --confirm 0 --exhaustive", folder.path());
  EXPECT_EQ(surely.code, 0) << surely.err;
  EXPECT_NE(surely.out.find("evaluated, may run out of memory"), std::string::npos) << surely.out;
  const cli::Outcome likely = cli::run_shell("$rehearse tune job.yaml --confirm 0 --exhaustive --fits likely", folder.path());
  EXPECT_EQ(likely.out.find("may run out of memory"), std::string::npos) << likely.out;
}

TEST(KeepClear, WhereNothingSurelyFitsTheAnswerSaysWhatMay) {
  const cli::TemporaryFolder folder;
  std::ofstream(folder.path() / "job.yaml") << nanotron_space("surely");
  // The plan of least need has just what it needs.
  const Tuned tuned(nanotron_space("likely"));
  const sim::Found found = found_in(tuned, sim::Bounds::none());
  double least = std::numeric_limits<double>::infinity();
  for (const sim::Candidate& plan : found.best.all()) least = std::min(least, plan.needed_bytes);
  const double share = 1.01 * least / sim::usable_bytes(tuned.space.base_of(0).system.gpu);
  const cli::Outcome none =
      cli::run_shell(fmt::format("$rehearse tune job.yaml --confirm 0 --exhaustive --memory {:.4f}", share), folder.path());
  EXPECT_EQ(none.code, 1) << none.out;
  EXPECT_NE(none.out.find("no plan surely fits; --fits likely takes the "), std::string::npos) << none.out;
}

TEST(KeepClear, AnotherWordIsRefused) {
  const cli::Outcome refused = cli::run_program("tune llama2-70b-128-a100 --fits probably");
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(refused.err.find("surely, likely"), std::string::npos) << refused.err;
}

}  // namespace
}  // namespace rehearse::tests
