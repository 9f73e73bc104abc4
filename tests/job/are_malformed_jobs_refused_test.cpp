// malformed/NAME.yaml is refused with exactly the message in malformed/NAME.txt.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "tests/config/refusal.hpp"
#include "tests/job/sandbox.hpp"

namespace rehearse::sim {
namespace {

std::vector<std::string> corpus() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(std::string(REHEARSE_SOURCE_DIR) + "/tests/job/malformed")) {
    if (entry.path().extension() == ".yaml") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string contents(const std::string& path) {
  std::ostringstream out;
  out << std::ifstream(path, std::ios::binary).rdbuf();
  return out.str();
}

class AreMalformedJobsRefused : public testing::TestWithParam<std::string> {};

TEST_P(AreMalformedJobsRefused, with_the_whole_message) {
  enter_sandbox();
  const std::string stem = "malformed/" + GetParam();
  ASSERT_TRUE(std::filesystem::exists(stem + ".txt"));
  EXPECT_EQ(config::refusal_of([&] { return load_job({stem + ".yaml", {}, {}}); }) + "\n", contents(stem + ".txt"));
}

std::string test_name(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Corpus, AreMalformedJobsRefused, testing::ValuesIn(corpus()), test_name);

TEST(AreMalformedJobsRefused, the_corpus_is_not_lost) { EXPECT_GE(corpus().size(), 150U); }

TEST(AreMalformedJobsRefused, bad_overrides) {
  enter_sandbox();
  const auto refusal = [](const std::string& key, const std::string& value) {
    return config::refusal_of([&] { return load_job({"small", {{key, value}}, {}}); });
  };
  EXPECT_EQ(refusal("parallel.tpp", "4"),
            "--set parallel.tpp=4:1:10: error: unknown key 'tpp' in parallel\n    1 | parallel.tpp=4\n      |          ^\n"
            "  did you mean 'tp'? known: tp, cp, pp, dp, ep, etp, vpp, cp_comm, sp, order, layers_per_stage");
  EXPECT_EQ(refusal("parallel.tp", "3"),
            "data/workloads/jobs/small.yaml:4:11: error: tp*cp*pp*dp = 3*1*2*4 = 24, but the job has 16 GPUs\n"
            "    4 | parallel: {tp: 2, pp: 2, dp: 4}\n      |           ^\n  gpus: 24 would fit");
  EXPECT_EQ(config::refusal_of([] {
              return load_job({"smal", {}, {}});
            }),
            "error: unknown job 'smal'\n  did you mean 'small'? known: small");
  EXPECT_EQ(config::refusal_of([] {
              return load_job({"small", {}, ~std::uint64_t{0}});
            }),
            "error: --seed must be between 0 and 9007199254740992, not 18446744073709551615");
}

}  // namespace
}  // namespace rehearse::sim
