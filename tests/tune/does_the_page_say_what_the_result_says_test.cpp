// The report page of a search: every number on it is result.json's, its map and its bars agree with one another, names stay text.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

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

// The attribute ATTRIBUTE of every element <data value="..." ATTRIBUTE="...">, with its value.
std::vector<std::pair<std::string, std::string>> numbers_with(const std::string& attribute, const std::string& page) {
  std::vector<std::pair<std::string, std::string>> found;
  const std::string begin = "<data value=\"", middle = "\" " + attribute + "=\"";
  for (std::size_t at = page.find(begin); at != std::string::npos; at = page.find(begin, at + 1)) {
    const std::size_t value = at + begin.size(), value_end = page.find('"', value);
    if (page.compare(value_end, middle.size(), middle) != 0) continue;
    const std::size_t text = value_end + middle.size();
    found.emplace_back(page.substr(value, value_end - value), page.substr(text, page.find('"', text) - text));
  }
  return found;
}

// How many there are.
std::size_t expect_numbers_of_the_result(const Written& written) {
  const auto numbers = numbers_with("data-at", written.page);
  for (const auto& [value, at] : numbers) EXPECT_EQ(json::parse(value), written.result.at(json::json_pointer(at))) << at;
  return numbers.size();
}

void expect_worse_shares(const Written& written) {
  int count = 0;
  for (const auto& [value, from] : numbers_with("data-from", written.page)) {
    std::istringstream words(from);
    std::string worse, one, other;
    words >> worse >> one >> other;
    if (worse != "worse") continue;
    const auto number = [&](const std::string& at) { return written.result.at(json::json_pointer(at)).get<double>(); };
    EXPECT_NEAR(std::stod(value), std::abs(number(one) / number(other) - 1), 1e-12) << from;
    ++count;
  }
  EXPECT_GT(count, 10);
}

bool has_section(const std::string& page, const std::string& id) { return page.find("<section id=\"" + id + "\"") != std::string::npos; }

TEST(PageOfASearch, HasTheNumbersOfTheResult) {
  const TemporaryFolder folder;
  for (const std::string goals : {"step", "step,memory", "tokens_per_s,mfu,memory"}) {
    const Written all = written(folder, "llama2-70b-128-a100 " + space + "--goal " + goals);
    EXPECT_GT(expect_numbers_of_the_result(all), 35U) << goals;
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
  EXPECT_GT(expect_numbers_of_the_result(all), 2U);
  EXPECT_NE(all.page.find("No plan fits</span>: the nearest"), std::string::npos);
  EXPECT_FALSE(has_section(all.page, "tune-keys"));
}

TEST(PageOfASearch, SaysWhatTheSimulationSays) {
  const TemporaryFolder folder;
  const Written all = written(folder, "llama3-8b-8-h100 --keep 3 --confirm 2 --space batch.micro=1,2 --space recompute=none,full");
  EXPECT_NE(all.page.find("data-at=\"/tune/best/1/simulated_step_s\""), std::string::npos);
  EXPECT_NE(all.page.find("data-at=\"/tune/best/0/simulated_rank\""), std::string::npos);
  EXPECT_GT(expect_numbers_of_the_result(all), 10U);
}

}  // namespace
}  // namespace rehearse::tests
