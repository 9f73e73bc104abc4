// A search that is asked to end says what it knows at once, and no more than that.
#include <gtest/gtest.h>

#include <sstream>

#include "sim/report/reporter.hpp"
#include "sim/tune/report.hpp"
#include "tests/tune/spaces.hpp"

namespace rehearse::tests {
namespace {

const char* const large_space =
    "{model: llama2-7b, cluster: dgx-a100-80g-hdr200, gpus: 64, batch: {global: 256, micro: 1, sequence: 4096}, tune: {space: default}}";

TEST(AnEndedSearch, DoesNotLookAtASpaceFirst) {
  const Tuned tuned(large_space);
  ASSERT_GE(tuned.space.size(), sim::Bounds{}.look_from);
  std::atomic<bool> stop = false;
  EXPECT_TRUE(sim::Search(tuned.space, tuned.spec, {}, false, &stop).threshold().found);
  stop = true;
  EXPECT_FALSE(sim::Search(tuned.space, tuned.spec, {}, false, &stop).threshold().found);
}

TEST(AnEndedSearch, DoesNotSayThatNothingFits) {
  const Tuned tuned(large_space);
  const std::atomic<bool> stop = true;
  const sim::Search search(tuned.space, tuned.spec, {}, false, &stop);
  std::optional<sim::Job> job;
  const sim::TuneReport tune = sim::report_of(tuned.space, tuned.spec, search, search.nothing(), job);
  sim::Report report(sim::summary_of(tuned.space.base_of(0)), "tune-");
  report.add(&tune);
  std::ostringstream out;
  sim::ReporterRegistry::get("tune-console").write(report, out);
  EXPECT_EQ(out.str().find("no plan fits"), std::string::npos) << out.str();
  EXPECT_NE(out.str().find("before the search was ended"), std::string::npos) << out.str();
}

}  // namespace
}  // namespace rehearse::tests
