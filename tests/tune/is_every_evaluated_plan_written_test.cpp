// `tune --all`: a row of tune.csv for each plan that was evaluated, the same however the search is divided.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "config/table.hpp"
#include "tests/cli/program.hpp"

namespace rehearse::tests {
namespace {

using cli::content_of;
using cli::Outcome;
using cli::run_shell;
using cli::TemporaryFolder;
using nlohmann::json;

const std::string search_of_all =
    "$rehearse tune llama2-70b-128-a100 --confirm 0 --all --goal mfu,memory --keep 3 --set 'tune.space={parallel.tp: [2, 4, 8], "
    "parallel.pp: [1, 2, 4, 8], batch.micro: [1, 2, 4], recompute: all, optimizer.sharding: [none, zero1]}' ";

void expect_written(const Outcome& outcome) { ASSERT_EQ(outcome.code, 0) << outcome.err; }

TEST(EveryPlan, HasARowWithWhatPredictSays) {
  const TemporaryFolder folder;
  expect_written(run_shell(search_of_all + "--exhaustive -o out", folder.path()));
  const json counts = json::parse(content_of(folder.path() / "out/result.json")).at("tune").at("counts");
  config::Table table(content_of(folder.path() / "out/tune.csv"), "tune.csv");
  const auto column = [&](const std::string& title) {
    return static_cast<std::size_t>(std::ranges::find(table.titles(), title) - table.titles().begin());
  };
  const auto text = [&](std::size_t at) { return std::string(table.cell(at)); };
  const std::size_t list = column("list"), step = column("step_s"), mfu = column("mfu"), tp = column("parallel.tp"),
                    pp = column("parallel.pp"), micro = column("batch.micro"), recompute = column("recompute"),
                    sharding = column("optimizer.sharding");
  std::uint64_t fit = 0, unfit = 0, may_run_out = 0;
  std::set<std::string> plans;
  double best_mfu = 0, first_mfu = 0;
  while (table.next()) {
    const std::string kind = text(list);
    if (kind == "best" && first_mfu == 0) first_mfu = table.number(mfu);
    if (kind != "fits" && kind != "may run out" && kind != "does not fit") continue;
    kind == "fits" ? ++fit : ++unfit;
    if (kind == "may run out") ++may_run_out;
    const std::string settings = "--set parallel.tp=" + text(tp) + " --set parallel.pp=" + text(pp) + " --set batch.micro=" + text(micro) +
                                 " --set 'recompute=" + text(recompute) + "' --set optimizer.sharding=" + text(sharding);
    EXPECT_TRUE(plans.insert(settings).second) << settings;
    if (kind == "fits") best_mfu = std::max(best_mfu, table.number(mfu));
    if (kind != "fits") {
      EXPECT_EQ(text(mfu), "");
    }
    if ((fit + unfit) % 20 != 1) continue;
    const Outcome predicted =
        cli::run_program("predict llama2-70b-128-a100 --json " + settings + " --set parallel.dp=" + text(column("parallel.dp")));
    EXPECT_EQ(json::parse(predicted.out).at("results").at("analytic").at("step_s"), table.number(step)) << settings;
  }
  EXPECT_EQ(fit + unfit, counts.at("evaluated"));
  EXPECT_EQ(may_run_out, counts.at("may_run_out"));
  EXPECT_EQ(unfit - may_run_out, counts.at("do_not_fit"));
  EXPECT_GT(unfit, 0U);
  EXPECT_EQ(best_mfu, first_mfu);
}

TEST(EveryPlan, IsTheSameOnThreadsAndInShards) {
  const TemporaryFolder folder;
  expect_written(run_shell(search_of_all + "--jobs 1 -o whole", folder.path()));
  expect_written(run_shell(search_of_all + "--jobs 3 -o threads", folder.path()));
  expect_written(run_shell(
      "for k in 1 2 3; do " + search_of_all + "--shard $k/3 -o parts || exit 1; done; " + search_of_all + "--merge parts -o merged",
      folder.path()));
  for (const char* other : {"threads", "merged"}) {
    EXPECT_EQ(content_of(folder.path() / "whole/tune.csv"), content_of(folder.path() / other / "tune.csv")) << other;
    EXPECT_EQ(content_of(folder.path() / "whole/result.json"), content_of(folder.path() / other / "result.json")) << other;
  }
}

TEST(EveryPlan, NeedsAFolderAndPartsThatHaveThemAll) {
  const TemporaryFolder folder;
  const Outcome nowhere = run_shell(search_of_all, folder.path());
  EXPECT_EQ(nowhere.code, 2);
  EXPECT_NE(nowhere.err.find("--all needs a folder for tune.csv"), std::string::npos) << nowhere.err;
  expect_written(run_shell(search_of_all + "--shard 1/2 -o parts; " + search_of_all + "--shard 2/2 -o parts", folder.path()));
  const std::string without = std::string(search_of_all).replace(search_of_all.find("--all "), 6, "");
  const Outcome other = run_shell(without + "--merge parts -o merged", folder.path());
  EXPECT_EQ(other.code, 2);
  EXPECT_NE(other.err.find("was made by another search"), std::string::npos) << other.err;
}

}  // namespace
}  // namespace rehearse::tests
