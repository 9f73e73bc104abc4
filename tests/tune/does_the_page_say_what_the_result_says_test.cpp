// The report page of a search: every number on it is result.json's, its map and its bars agree with one another, names stay text.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <regex>

#include "tests/cli/program.hpp"

namespace rehearse::tests {
namespace {

using cli::content_of;
using cli::Outcome;
using cli::run_shell;
using cli::TemporaryFolder;
using nlohmann::json;

const std::string space =
    "--confirm 0 --set 'tune.space={parallel.tp: [1, 2, 4, 8], parallel.pp: [1, 2, 4], batch.micro: [1, 2], recompute: all, "
    "\"overlap.dp_gradients\": both}' --set 'tune.together=[[parallel.sp, parallel.tp > 1]]' ";

struct Written {
  json result;
  std::string page;
};

// What `tune` wrote with --html, which `report` writes again from the other files.
Written written(const TemporaryFolder& folder, const std::string& arguments, int code = 0) {
  const Outcome made = run_shell("$rehearse tune " + arguments + " -o out --html", folder.path());
  EXPECT_EQ(made.code, code) << made.err;
  Written all{json::parse(content_of(folder.path() / "out/result.json")), content_of(folder.path() / "out/report.html")};
  const Outcome again = run_shell("rm out/report.html; $rehearse report out", folder.path());
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(content_of(folder.path() / "out/report.html"), all.page);
  return all;
}

// How many there are.
int expect_numbers_of_the_result(const Written& written) {
  static const std::regex number("<data value=\"([^\"]*)\" data-at=\"([^\"]*)\">");
  int count = 0;
  for (std::sregex_iterator at(written.page.begin(), written.page.end(), number), end; at != end; ++at, ++count) {
    const json& value = written.result.at(json::json_pointer((*at)[2].str()));
    EXPECT_EQ(json::parse((*at)[1].str()), value) << (*at)[2];
  }
  return count;
}

void expect_worse_shares(const Written& written) {
  static const std::regex share("<data value=\"([^\"]*)\" data-from=\"worse ([^ ]*) ([^ \"]*)\">");
  int count = 0;
  for (std::sregex_iterator at(written.page.begin(), written.page.end(), share), end; at != end; ++at, ++count) {
    const auto value = [&](int group) { return written.result.at(json::json_pointer((*at)[group].str())).get<double>(); };
    EXPECT_NEAR(std::stod((*at)[1]), std::abs(value(2) / value(3) - 1), 1e-12) << (*at)[2];
  }
  EXPECT_GT(count, 10);
}

bool has_section(const std::string& page, const std::string& id) { return page.find("<section id=\"" + id + "\"") != std::string::npos; }

TEST(PageOfASearch, HasTheNumbersOfTheResult) {
  const TemporaryFolder folder;
  for (const std::string goals : {"step", "step,memory", "tokens_per_s,mfu,memory"}) {
    const Written all = written(folder, "llama2-70b-128-a100 " + space + "--goal " + goals);
    EXPECT_GT(expect_numbers_of_the_result(all), 35) << goals;
    expect_worse_shares(all);
    for (const std::string id : {"tune-best", "tune-keys", "tune-points", "job"}) EXPECT_TRUE(has_section(all.page, id)) << id;
    EXPECT_EQ(has_section(all.page, "tune-front"), goals != "step");
  }
}

// The best of a row of the map is the best plan with the row's value, and so of the columns, as far as they are known.
TEST(PageOfASearch, HasAMapThatAgreesWithItsKeys) {
  const TemporaryFolder folder;
  const json tune = written(folder, "llama2-70b-128-a100 --exhaustive " + space).result.at("tune");
  const json &map = tune.at("map"), &sensitivity = tune.at("sensitivity");
  const auto expect_best = [&](const json& cells, const std::string& key, const std::string& value) {
    json best;
    for (const json& cell : cells) {
      if (!cell.is_null() && (best.is_null() || cell < best)) best = cell;
    }
    const json& expected = sensitivity.at(key).at(value);
    EXPECT_EQ(best.is_null(), expected.is_null()) << key << ' ' << value;
    // Plans that are equally good differ by less than a part in 10^12.
    if (!best.is_null()) {
      EXPECT_NEAR(best.get<double>(), expected.get<double>(), 2e-12 * best.get<double>()) << key << ' ' << value;
    }
  };
  const std::string row_key = map.at("keys")[0], column_key = map.at("keys")[1];
  for (std::size_t i = 0; i < map.at("rows").size(); ++i) expect_best(map.at("goals")[i], row_key, map.at("rows")[i]);
  for (std::size_t j = 0; j < map.at("columns").size(); ++j) {
    json column = json::array();
    for (const json& row : map.at("goals")) column.push_back(row[j]);
    expect_best(column, column_key, map.at("columns")[j]);
  }
}

TEST(PageOfASearch, KeepsNamesAsText) {
  const TemporaryFolder folder;
  const Written all = written(folder, "llama2-70b-128-a100 " + space + "--goal step,memory --set 'name=\"</script><img src=x>\"'");
  EXPECT_EQ(all.page.find("<img"), std::string::npos);
  EXPECT_NE(all.page.find("<h1>&lt;/script&gt;&lt;img src=x&gt;</h1>"), std::string::npos);
}

TEST(PageOfASearch, SaysWhatTheNearestPlanLacks) {
  const TemporaryFolder folder;
  const Written all = written(folder, "llama2-70b-128-a100 " + space + "--memory 0.01", 1);
  EXPECT_GT(expect_numbers_of_the_result(all), 2);
  EXPECT_NE(all.page.find("No plan fits</span>: the nearest"), std::string::npos);
  EXPECT_FALSE(has_section(all.page, "tune-keys"));
}

TEST(PageOfASearch, SaysWhatTheSimulationSays) {
  const TemporaryFolder folder;
  const Written all = written(folder, "llama3-8b-8-h100 --keep 3 --confirm 2 --space batch.micro=1,2 --space recompute=none,full");
  EXPECT_NE(all.page.find("data-at=\"/tune/best/1/simulated_step_s\""), std::string::npos);
  EXPECT_NE(all.page.find("data-at=\"/tune/best/0/simulated_rank\""), std::string::npos);
  EXPECT_GT(expect_numbers_of_the_result(all), 10);
}

}  // namespace
}  // namespace rehearse::tests
