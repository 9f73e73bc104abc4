// Every job of malformed/ is refused with exactly the message that stands below it.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/config/refusal.hpp"
#include "tests/job/corpus.hpp"
#include "tests/job/sandbox.hpp"

namespace rehearse::sim {
namespace {

class AreMalformedJobsRefused : public testing::TestWithParam<MalformedJob> {};

TEST_P(AreMalformedJobsRefused, with_the_whole_message) {
  enter_sandbox();
  EXPECT_EQ(config::refusal_of([&] { return read_text(GetParam().job); }), GetParam().message);
}

std::string test_name(const testing::TestParamInfo<MalformedJob>& info) {
  std::string name = info.param.topic + "_" + info.param.name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Corpus, AreMalformedJobsRefused, testing::ValuesIn(malformed_jobs()), test_name);

TEST(AreMalformedJobsRefused, the_corpus_is_not_lost) { EXPECT_GE(malformed_jobs().size(), 216U); }

TEST(AreMalformedJobsRefused, nested_too_deeply) {
  enter_sandbox();
  std::string text;
  for (std::size_t depth = 0; depth < 150; ++depth) text += std::string(depth, ' ') + "a:\n";
  const std::string spaces(100, ' ');
  EXPECT_EQ(config::refusal_of([&] { return read_text(text); }),
            "job.yaml:101:101: error: nested deeper than 100 levels\n  101 | " + spaces + "a:\n      | " + spaces + "^");
}

TEST(AreMalformedJobsRefused, bad_overrides) {
  enter_sandbox();
  const auto refusal = [](const std::string& key, const std::string& value) {
    return config::refusal_of([&] { return load_job({"small", {{key, value}}, {}}); });
  };
  EXPECT_EQ(refusal("parallel.tpp", "4"),
            "--set parallel.tpp=4:1:10: error: unknown key 'tpp' in parallel\n    1 | parallel.tpp=4\n      |          ^\n"
            "  did you mean 'tp'? known: tp, cp, pp, dp, ep, etp, vpp, cp_comm, sp, order, layers_per_stage");
  EXPECT_EQ(refusal("parallel.tp", "3"),
            "--set parallel.tp=3:1:13: error: tp*cp*pp*dp = 3*1*2*4 = 24, but the job has 16 GPUs\n"
            "    1 | parallel.tp=3\n      |             ^\n  gpus: 24 would fit");
  EXPECT_EQ(refusal("gpus", "8"),
            "--set gpus=8:1:6: error: tp*cp*pp*dp = 2*1*2*4 = 16, but the job has 8 GPUs\n"
            "    1 | gpus=8\n      |      ^\n  dp: 2 would fit");
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
