// topology of a cluster with parts: each of them, what joins them, and a picture.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "tests/cli/program.hpp"

namespace rehearse::cli {
namespace {

constexpr const char* two_parts =
    "parts: {rich: {cluster: dgx-h100-ndr400, nodes: 1}, wide: {cluster: h20-roce-4x400, nodes: 2}, box: {cluster: pcie-box-4}}\n"
    "between: [{parts: [rich, wide], bandwidth: 800 Gbps, latency: 8 us}]\n";

class PartsOfTheTopology : public testing::Test {
 protected:
  Outcome run_on(const std::string& text, const std::string& options) {
    std::ofstream(folder_.path() / "parts.yaml") << text;
    return run_shell("\"$rehearse\" topology parts.yaml " + options, folder_.path());
  }
  TemporaryFolder folder_;
};

// Of 8 ports of 400 Gbit/s (rich) and 8 of both nodes (wide) the network between them lets 800 Gbit/s through.
TEST_F(PartsOfTheTopology, ShowsEachAndWhatJoinsThem) {
  const Outcome outcome = run_on(two_parts, "");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  for (const char* line : {"3 parts, 28 GPUs", "part rich: GPUs 0 to 7", "part wide: GPUs 8 to 23", "part box: GPUs 24 to 27",
                           "dgx-h100-ndr400: 8 x h100-sxm5-80g, 8 in a node", "rich - wide", "what joins them", "a part without a network"})
    EXPECT_NE(outcome.out.find(line), std::string::npos) << line << '\n' << outcome.out;
}

TEST_F(PartsOfTheTopology, IsAlsoThatOfAJob) {
  const Outcome job = run_on("model: llama3-8b\ncluster:\n  parts: {a: {cluster: dgx-h100-ndr400, nodes: 1}}\n", "");
  ASSERT_EQ(job.code, 0) << job.err;
  EXPECT_NE(job.out.find("1 parts, 8 GPUs"), std::string::npos) << job.out;
  const Outcome ready_made = run_program("topology serve-llama3-70b-two-types");
  EXPECT_NE(ready_made.out.find("rich - wide"), std::string::npos) << ready_made.out << ready_made.err;
  for (const char* name : {"serve-llama3-70b-apart", "serve-llama3-70b-together"}) {
    const Outcome of_one_kind = run_program(std::string("topology ") + name);
    EXPECT_EQ(of_one_kind.code, 0) << of_one_kind.err;
    EXPECT_NE(of_one_kind.out.find("8 in a node"), std::string::npos) << of_one_kind.out;
  }
  EXPECT_NE(run_program("topology serve-llama3-70b-apar").err.find("did you mean 'serve-llama3-70b-apart'?"), std::string::npos);
}

TEST_F(PartsOfTheTopology, IsDrawn) {
  const Outcome outcome = run_on(two_parts, "--dot -");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("subgraph \"cluster_rich\" {"), std::string::npos);
  EXPECT_NE(outcome.out.find("subgraph \"cluster_wide/node1\" {"), std::string::npos);
  EXPECT_NE(outcome.out.find("\"rich/gpu0\""), std::string::npos);
  EXPECT_EQ(outcome.out.find("\"gpu0\""), std::string::npos);
  EXPECT_NE(outcome.out.find("[label=\"100 GB/s\", style=bold]"), std::string::npos) << outcome.out;
  EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), '{'), std::count(outcome.out.begin(), outcome.out.end(), '}'));
}

TEST_F(PartsOfTheTopology, SaysWhatIsWrong) {
  const Outcome check = run_on(two_parts, "--check");
  EXPECT_EQ(check.code, 1);
  EXPECT_NE(check.out.find("part box: the loss of node0/pcie alone separates GPUs"), std::string::npos) << check.out;
  EXPECT_NE(check.out.find("nothing leads from part rich to part box"), std::string::npos) << check.out;
  EXPECT_NE(run_on(two_parts, "--gpus 8").err.find("--gpus is for a cluster of one kind"), std::string::npos);
  EXPECT_NE(run_on(two_parts, "--xml -").err.find("--xml is for a cluster of one kind"), std::string::npos);
  EXPECT_NE(run_on("parts: {a: {cluster: dgx-h100-ndr40}}\n", "").err.find("parts.yaml:1:"), std::string::npos);
  EXPECT_NE(run_on("parts: {a: {cluster: dgx-h100-ndr400}}\nbetween: 5\n", "").err.find("neither a network nor a list of them"),
            std::string::npos);
  EXPECT_NE(run_on("parts: {a: {cluster: dgx-h100-ndr400}}\nbetwen: {}\n", "").err.find("unknown key 'betwen'"), std::string::npos);
}

}  // namespace
}  // namespace rehearse::cli
