// What a job asks for in vain, or is counted otherwise than it says, stands in its notes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "sim/serving/serving_job.hpp"

namespace rehearse::tests {
namespace {

bool notes(const std::string& pools, const std::string& router, const std::string& words) {
  const sim::ServingJob job = sim::read_serving_job(
      config::Node::load_text(fmt::format("model: llama3-8b\ncluster: a100-pcie-8\nsoftware: vllm\nserving:\n  pools: {{{}}}\n{}"
                                          "  load: {{arrivals: {{poisson: 1 /s}}, input: 100, output: 10, requests: 10}}\n",
                                          pools, router),
                              "job.yaml"),
      "job");
  return std::ranges::any_of(job.notes, [&](const std::string& note) { return note.find(words) != std::string::npos; });
}

TEST(AJobsNotes, name_what_changes_nothing) {
  const std::string random = "  router: {decode: random}\n", apart = "p: {role: prefill}, d: {role: decode}";
  EXPECT_TRUE(notes("all: {role: both}", random, "router.decode chooses nothing"));
  EXPECT_FALSE(notes(apart, random, "chooses nothing"));
  EXPECT_TRUE(notes("p: {role: prefill, graphs: false}, d: {role: decode}", "", "pool p: graphs change nothing"));
  EXPECT_FALSE(notes("p: {role: prefill}, d: {role: decode, graphs: false}", "", "graphs"));
}

TEST(AJobsNotes, say_that_integers_count_as_floats) {
  EXPECT_TRUE(notes("all: {role: both, precision: {compute: bf16, weights: int8, kv: bf16}}", "", "int8 counts as fp8"));
  EXPECT_TRUE(notes("all: {role: both, precision: {compute: bf16, weights: int4, kv: bf16}}", "", "int4 counts as fp4"));
  EXPECT_FALSE(notes("all: {role: both, precision: {compute: bf16, weights: fp8, kv: bf16}}", "", "counts as"));
}

}  // namespace
}  // namespace rehearse::tests
