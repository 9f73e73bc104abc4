// A space that makes no sense is refused where it was written, with what would be right.
#include <gtest/gtest.h>

#include "tests/cli/program.hpp"
#include "tests/tune/spaces.hpp"

namespace rehearse::tests {
namespace {

constexpr const char* job = "llama2-70b-128-a100";

struct Wrong {
  const char* name;
  const char* tune;     // the section's content
  const char* message;  // contained in what is said
};

std::ostream& operator<<(std::ostream& out, const Wrong& wrong) { return out << wrong.name; }

std::string document(const std::string& section) {
  return "model: llama2-70b\ncluster: dgx-a100-80g-hdr200\ngpus: 128\nbatch: {global: 256, micro: 1, sequence: 4096}\ntune:\n" + section;
}

class WrongSpaces : public testing::TestWithParam<Wrong> {};

TEST_P(WrongSpaces, AreRefusedWithTheirPlace) {
  const cli::TemporaryFolder folder;
  std::ofstream(folder.path() / "job.yaml") << document(GetParam().tune);
  const cli::Outcome outcome = cli::run_shell("$rehearse tune job.yaml --confirm 0", folder.path());
  EXPECT_EQ(outcome.code, 2) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  EXPECT_NE(outcome.err.find(GetParam().message), std::string::npos) << outcome.err;
  EXPECT_TRUE(outcome.err.starts_with("job.yaml:6:") || outcome.err.starts_with("job.yaml:7:")) << outcome.err;
}

const Wrong wrong_spaces[] = {
    {"unknown_key", "  space: {parallel.tpp: [1, 2]}\n", "job.yaml:6:11: error: unknown key 'parallel.tpp'"},
    {"empty_list", "  space: {parallel.tp: []}\n", "parallel.tp: the list of values is empty"},
    {"missing_value", "  space: {parallel.tp: }\n", "parallel.tp: a value is missing"},
    {"value_of_another_kind", "  space: {parallel.tp: [1, two]}\n", "job.yaml:6:28: error: parallel.tp"},
    {"value_out_of_range", "  space: {parallel.tp: [0, 1]}\n", "must be between 1 and 1000000"},
    {"named_twice", "  space: {parallel.tp: [1, 2, 1]}\n", "parallel.tp: 1 is given twice"},
    {"divisors_of_nothing", "  space: {simulation.steps: divisors}\n", "nothing to divide"},
    {"divisors_of_a_word", "  space: {schedule: divisors}\n", "is no whole number"},
    {"both_of_many", "  space: {schedule: both}\n", "both does not say which values"},
    {"range_backwards", "  space: {parallel.tp: {from: 8, to: 1}}\n", "the range from 8 to 1 is empty"},
    {"range_two_ways", "  space: {parallel.tp: {from: 1, to: 8, by: 1, times: 2}}\n", "by or times, not both"},
    {"one_inside_the_other", "  space: {recompute: all, recompute.full_layers: [1, 2]}\n", "one inside the other"},
    {"follows_nothing", "  space: {parallel.pp: [1, 2]}\n  together: [[parallel.sp, parallel.tp > 1]]\n", "is not searched"},
    {"follows_itself_searched", "  space: {parallel.tp: [1, 2], parallel.sp: both}\n  together: [[parallel.sp, parallel.tp > 1]]\n",
     "is searched itself"},
    {"strange_condition", "  space: {parallel.tp: [1, 2]}\n  together: [[parallel.sp, parallel.tp is large]]\n",
     "neither is a key nor a condition"},
    {"unknown_goal", "  goal: speed\n", "job.yaml:6:9: error:"},
    {"same_goal_twice", "  goal: [step, step]\n", "named twice in tune.goal"},
    {"time_without_length", "  goal: time\n", "job.yaml:6:9: error: goal time needs the length of the training"},
    {"cost_without_price", "  goal: [step, cost]\n", "job.yaml:6:16: error: goal cost needs a price"},
    {"too_many_points",
     "  space: {parallel.tp: {from: 1, to: 1000}, parallel.pp: {from: 1, to: 1000}, parallel.cp: {from: 1, to: 1000}, batch.micro: {from: "
     "1, to: 1000}}\n",
     "the space has 1e+12 points"},
    {"too_many_jobs", "  space: {training.steps: {from: 1, to: 20000}}\n", "make 20000 jobs, more than 10000"},
    {"none_kept", "  keep: 0\n", "tune.keep"},
    {"memory_beyond_all", "  memory: 1.5\n", "tune.memory"},
    {"within_what", "  within: far\n", "takes a share from 0 % to 100 %"},
    {"more_gpus_than_there_are", "  space: {gpus: [128, 100000000]}\n", "gpus"},
};

INSTANTIATE_TEST_SUITE_P(Each, WrongSpaces, testing::ValuesIn(wrong_spaces), [](const auto& info) { return std::string(info.param.name); });

TEST(Tuning, OfASpaceOfOnePointIsThatPlan) {
  const cli::Outcome outcome = cli::run_program(fmt::format("tune {} --confirm 0 --json --set 'tune.space={{}}'", job));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("\"points\": 1,"), std::string::npos) << outcome.out;
}

TEST(Tuning, SaysNoWithTheNearestPlanWhereNoneFits) {
  const cli::Outcome outcome =
      cli::run_program(fmt::format("tune {} --confirm 0 --set 'tune.space={{parallel.vpp: [1]}}' --memory 0.02", job));
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  EXPECT_NE(outcome.out.find("no plan fits: the nearest lacks"), std::string::npos) << outcome.out;
}

TEST(Tuning, SaysNoWithTheRuleWhereEveryPointIsRefused) {
  const cli::Outcome outcome = cli::run_program(fmt::format("tune {} --confirm 0 --set 'tune.space={{parallel.tp: [3, 7]}}'", job));
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  EXPECT_NE(outcome.out.find("refused: gpus, e.g. 128 is no multiple of"), std::string::npos) << outcome.out;
}

}  // namespace
}  // namespace rehearse::tests
