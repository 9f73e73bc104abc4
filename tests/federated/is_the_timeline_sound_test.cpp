// timeline.json of a round: a device does one thing at a time, for readers too, who add ts and dur as doubles.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "sim/federated/sections.hpp"
#include "sim/report/reporter.hpp"
#include "tests/federated/jobs.hpp"

namespace rehearse::federated {
namespace {

TEST(Timeline, no_two_spans_of_a_track_overlap) {
  const auto job = std::make_shared<const Job>(job_from(random_job_text(7)));
  RoundSection section{.job = job, .plan = make_plan(*job), .formula = {}, .simulated = {}, .reasons = {}};
  section.simulated = simulate_round(*job, section.plan, {}, {.spans = true});
  const double round_us = 1e6 * section.simulated->result.round_s;
  std::ostringstream out;
  sim::ReporterRegistry::get("federated-timeline").write(sim::Report(summary_of(*job), "federated-").own(std::move(section)), out);

  std::map<int, std::map<double, double>> tracks;  // when spans begin and end
  const auto timeline = nlohmann::json::parse(out.str());
  for (const auto& event : timeline.at("traceEvents")) {
    if (event.at("ph") != "X") continue;
    const double begin_us = event.at("ts");
    EXPECT_TRUE(tracks[event.at("tid")].emplace(begin_us, begin_us + event.at("dur").get<double>()).second);
  }
  ASSERT_GT(tracks.size(), 2);
  for (const auto& [track, spans] : tracks) {
    double last_us = 0;
    for (const auto& [begin_us, end_us] : spans) {
      EXPECT_GE(begin_us, last_us) << "track " << track;
      EXPECT_LE(end_us, round_us * (1 + 1e-9));
      last_us = end_us;
    }
  }
}

}  // namespace
}  // namespace rehearse::federated
