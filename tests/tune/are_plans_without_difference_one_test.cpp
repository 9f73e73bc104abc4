// Plans that differ only in keys without effect are one plan, with their number and these keys: in JSON, tables and on the page.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/program.hpp"

namespace rehearse::tests {
namespace {

using cli::content_of;
using nlohmann::json;

// With tp 1 there is nothing that overlap.tp could hide; with tp 2 there is. Sequences of 4096, which fit either way.
TEST(Twins, AreOnePlanWithTheKeysWithoutEffect) {
  const cli::TemporaryFolder folder;
  const cli::Outcome outcome = cli::run_shell(
      "$rehearse tune llama3-8b-8-h100 --confirm 0 --set batch.sequence=4096 --set 'tune.space={parallel.tp: [1, 2], overlap.tp: both}' "
      "--set 'tune.together=[[parallel.sp, parallel.tp > 1]]' -o out --html",
      folder.path());
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const json tune = json::parse(content_of(folder.path() / "out/result.json")).at("tune");
  EXPECT_EQ(tune.at("counts").at("evaluated"), 4);
  ASSERT_EQ(tune.at("best").size(), 3U);
  int alone = 0;
  for (const json& plan : tune.at("best")) {
    const bool one_gpu_per_layer = plan.at("set").dump().find("parallel.tp=1") != std::string::npos;
    EXPECT_EQ(plan.contains("twins"), one_gpu_per_layer) << plan.dump();
    alone += one_gpu_per_layer ? 0 : 1;
    if (!one_gpu_per_layer) continue;
    EXPECT_EQ(plan.at("twins"), 1);
    EXPECT_EQ(plan.at("without_effect"), json({"overlap.tp"}));
  }
  EXPECT_EQ(alone, 2);
  EXPECT_NE(outcome.out.find("1: overlap.tp"), std::string::npos) << outcome.out;
  EXPECT_NE(content_of(folder.path() / "out/report.html").find(">1: overlap.tp<"), std::string::npos);
}

}  // namespace
}  // namespace rehearse::tests
