// Lengths that are ready-made: means and 90th percentiles of the traces that they were taken from, in pairs.
#include <gtest/gtest.h>

#include <algorithm>

#include "deployments.hpp"
#include "sim/serving/load_moments.hpp"
#include "sim/serving/serving_job.hpp"

namespace rehearse::tests {
namespace {

std::string with_lengths(const std::string& name) {
  std::string text = small_job;
  const std::string before = "input: 1000, output: 100, requests: 200";
  return text.replace(text.find(before), before.size(), "input: {from: " + name + "}, output: {from: trace}, requests: 1000");
}

struct Published {
  const char* name;
  double input, output, input_p90, output_p90;
};

// Of the whole traces: means and 90th percentiles.
TEST(ReadyMadeLengths, are_those_of_their_traces) {
  for (const Published& trace : {Published{"azure-conversation", 1155, 211, 2735, 424},
                                 {"azure-code", 2048, 27.9, 5194, 55},
                                 {"mooncake-conversation", 12035, 343, 27367, 597},
                                 {"mooncake-synthetic", 15325, 149, 38615, 389}}) {
    const sim::ServingJob job = sim::read_serving_job(config::Node::load_text(with_lengths(trace.name), "job.yaml"), "job");
    const sim::LoadMoments moments = sim::moments_of(job.load, 1);
    EXPECT_NEAR(moments.input / trace.input, 1, 0.01) << trace.name;
    EXPECT_NEAR(moments.output / trace.output, 1, 0.06) << trace.name;
    EXPECT_NEAR(moments.input_at(0.9) / trace.input_p90, 1, 0.02) << trace.name;
    std::vector<int> outputs;
    for (const workloads::Request& request : *job.load.trace) outputs.push_back(request.tokens.output);
    std::ranges::sort(outputs);
    EXPECT_NEAR(outputs[900] / trace.output_p90, 1, 0.05) << trace.name;
  }
}

TEST(ReadyMadeLengths, that_nobody_made_are_refused) {
  try {
    static_cast<void>(sim::read_serving_job(config::Node::load_text(with_lengths("azure-conversations"), "job.yaml"), "job"));
    FAIL() << "accepted";
  } catch (const config::InputError& error) {
    const std::string what = error.what();
    EXPECT_NE(what.find("job.yaml:7:"), std::string::npos) << what;
    EXPECT_NE(what.find("no ready-made lengths of that name"), std::string::npos) << what;
    EXPECT_NE(what.find("azure-conversation"), std::string::npos) << what;
  }
}

}  // namespace
}  // namespace rehearse::tests
