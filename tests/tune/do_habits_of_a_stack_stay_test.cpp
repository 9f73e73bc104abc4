// A key that is searched brings its own value, and leaves what the stack does with it: the plan that `tune` finds is what `predict` says.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/program.hpp"

namespace rehearse::tests {
namespace {

using nlohmann::json;

TEST(HabitsOfAStack, StayWhateverRecomputationIsTried) {
  for (const std::string stack : {"torchtitan", "maxtext", "megatron-core"}) {
    for (const std::string value : {"none", "selective", "full", "'{kept: [linear_qkv]}'", "'{modules: [mlp]}'"}) {
      const std::string job =
          "llama3-8b-8-h100 --json --set gpus=8 --set parallel.dp=4 --set optimizer.sharding=zero3 --set software=" + stack;
      const std::string bare = value.front() == '\'' ? value.substr(1, value.size() - 2) : value;
      const cli::Outcome tuned = cli::run_shell(
          "exec \"$rehearse\" tune " + job + " --confirm 0 --set 'tune.space={recompute: [" + bare + "]}'", testing::TempDir());
      const cli::Outcome predicted = cli::run_shell("exec \"$rehearse\" predict " + job + " --set recompute=" + value, testing::TempDir());
      const json tune = json::parse(tuned.out).at("tune");
      const json plan = tune.at("best").empty() ? tune.at("nearest") : tune.at("best");
      const json result = json::parse(predicted.out).at("results").at("analytic");
      EXPECT_EQ((plan.is_array() ? plan.at(0) : plan).at("step_s"), result.at("step_s")) << stack << ' ' << value;
    }
  }
}

}  // namespace
}  // namespace rehearse::tests
