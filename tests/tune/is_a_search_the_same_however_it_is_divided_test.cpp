// The same bytes on any number of threads and tasks, killed and resumed.
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/cli/program.hpp"

namespace rehearse::tests {
namespace {

using cli::content_of;
using cli::run_shell;
using cli::TemporaryFolder;

const std::string search =
    "$rehearse tune llama2-70b-128-a100 --confirm 0 --goal step,memory --set 'tune.space={parallel.tp: [1, 2, 4, 8], parallel.pp: [1, 2, "
    "4, 8], "
    "batch.micro: [1, 2], recompute: all, optimizer.sharding: [none, zero1], overlap.dp_gradients: both, overlap.pp: both}' "
    "--set 'tune.together=[[parallel.sp, parallel.tp > 1]]' ";

void expect_success(const cli::Outcome& outcome) { ASSERT_EQ(outcome.code, 0) << outcome.out << outcome.err; }

void expect_same_files(const std::filesystem::path& one, const std::filesystem::path& other) {
  for (const char* file : {"result.json", "tune.csv", "best.yaml"}) {
    EXPECT_EQ(content_of(one / file), content_of(other / file)) << other / file;
    EXPECT_FALSE(content_of(other / file).empty());
  }
}

class OneSearch : public testing::Test {
 protected:
  void SetUp() override { expect_success(run_shell(search + "--jobs 1 -o whole", folder_.path())); }
  TemporaryFolder folder_;
};

TEST_F(OneSearch, GivesTheSameOnAnyNumberOfThreads) {
  for (const char* jobs : {"2", "7"}) {
    expect_success(run_shell(search + "--jobs " + jobs + " -o threads", folder_.path()));
    expect_same_files(folder_.path() / "whole", folder_.path() / "threads");
  }
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "threads" / "shard-1-of-1.json"));
}

TEST_F(OneSearch, GivesTheSameInAnyNumberOfShards) {
  for (const std::string of : {"1", "3", "16"}) {
    const std::string parts =
        "for k in $(seq " + of + "); do " + search + "--jobs 1 --shard $k/" + of + " -o parts" + of + " > /dev/null || exit 1; done";
    expect_success(run_shell(parts, folder_.path()));
    if (of == "1") continue;  // one of one is the whole
    expect_success(run_shell(search + "--merge parts" + of + " -o merged" + of, folder_.path()));
    expect_same_files(folder_.path() / "whole", folder_.path() / ("merged" + of));
  }
}

// At an instant that nobody chose: before the first block, or with some done.
TEST(EndedSearch, GoesOnWhereItWasEnded) {
  const TemporaryFolder folder;
  const std::string job = "$rehearse tune llama2-70b-128-a100 --confirm 0 --exhaustive --space parallel.tp=2,4,8 --space parallel.cp=1,2 ";
  expect_success(run_shell(job + "-o whole", folder.path()));
  int ended_midway = 0;
  for (const char* after : {"0.15", "0.4", "0.8"}) {
    const cli::Outcome ended = run_shell("rm -rf ended; " + job + "-o ended & sleep " + after + "; kill -TERM $!; wait $!", folder.path());
    if (ended.code == 0) continue;  // it was faster
    ASSERT_EQ(ended.code, 143) << ended.err;
    if (ended.err.find("goes on from there") == std::string::npos) continue;  // it had not begun
    ++ended_midway;
    expect_success(run_shell(job + "--jobs 2 --resume ended -o resumed", folder.path()));
    expect_same_files(folder.path() / "whole", folder.path() / "resumed");
  }
  EXPECT_GT(ended_midway, 0);
}

TEST_F(OneSearch, RefusesPartsOfAnotherSearchAndMissingOnes) {
  const std::filesystem::path& folder = folder_.path();
  expect_success(run_shell(search + "--shard 1/3 -o parts; " + search + "--shard 2/3 -o parts", folder));
  const cli::Outcome missing = run_shell(search + "--merge parts", folder);
  EXPECT_EQ(missing.code, 2);
  EXPECT_NE(missing.err.find("shard 3 of 3 is missing"), std::string::npos) << missing.err;
  const cli::Outcome other = run_shell(search + "--set batch.global=512 --shard 1/3 -o parts", folder);
  EXPECT_EQ(other.code, 2);
  EXPECT_NE(other.err.find("was made by another search"), std::string::npos) << other.err;
  expect_success(run_shell("truncate -s 1000 parts/shard-2-of-3.json", folder));
  const cli::Outcome damaged = run_shell(search + "--shard 2/3 -o parts", folder);
  EXPECT_EQ(damaged.code, 2);
  EXPECT_NE(damaged.err.find("damaged"), std::string::npos) << damaged.err;
}

TEST(BestYaml, IsTheBestPlanAsAJob) {
  const TemporaryFolder folder;
  expect_success(run_shell(search + "-o out > /dev/null; $rehearse predict out/best.yaml --json > predicted.json", folder.path()));
  const cli::Outcome same = run_shell(
      "python3 -c \"import json; best = json.load(open('out/result.json'))['tune']['best'][0]; "
      "step = json.load(open('predicted.json'))['results']['analytic']['step_s']; assert best['step_s'] == step, (best['step_s'], step)\"",
      folder.path());
  EXPECT_EQ(same.code, 0) << same.err;
}

TEST(BestPlan, IsReproducedByItsSettings) {
  const TemporaryFolder folder;
  expect_success(run_shell(search + "--json > tuned.json", folder.path()));
  const cli::Outcome same = run_shell(
      "export rehearse; python3 -c \"import json, subprocess, os\nfor best in json.load(open('tuned.json'))['tune']['best']:\n"
      "  sets = sum((['--set', s] for s in best['set']), [])\n"
      "  out = subprocess.run([os.environ['rehearse'], 'predict', 'llama2-70b-128-a100', '--json', *sets], capture_output=True).stdout\n"
      "  assert json.loads(out)['results']['analytic']['step_s'] == best['step_s']\"",
      folder.path());
  EXPECT_EQ(same.code, 0) << same.err;
}

}  // namespace
}  // namespace rehearse::tests
