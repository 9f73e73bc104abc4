// Tables of comma-separated values: read as they are written, and refused at the line and column where they are wrong.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "config/table.hpp"

namespace rehearse::config {
namespace {

std::string refusal(const std::function<void()>& act) {
  try {
    act();
  } catch (const InputError& error) {
    const std::string what = error.what();
    return what.substr(0, what.find('\n'));
  }
  return "nothing was refused";
}

std::string refusal_of_rows(const std::string& text) {
  return refusal([&] {
    Table table(text, "t.csv");
    while (table.next()) static_cast<void>(table.whole(1, 0, 10, "row: "));
  });
}

TEST(IsATableRead, with_blanks_comments_and_ends_of_lines) {
  Table other("\xEF\xBB\xBF\n# made by hand\n a , b\r\n1, 2 \r\n# no row\n  \n x y ,", "t.csv");
  EXPECT_EQ(other.titles(), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(other.column("b"), 1U);
  EXPECT_FALSE(other.column("c"));
  ASSERT_TRUE(other.next());
  EXPECT_EQ(other.where().line, 4);
  EXPECT_EQ(other.number(0), 1);
  EXPECT_EQ(other.whole(1, 0, 10), 2);
  ASSERT_TRUE(other.next());
  EXPECT_EQ(other.cell(0), "x y");
  EXPECT_EQ(other.cell(1), "");
  EXPECT_FALSE(other.next());
}

TEST(IsATableRead, with_cells_in_quotes) {
  Table table("a,b,c\n\"x, y\" , \"say \"\"no\"\"\",\"\"\n", "t.csv");
  ASSERT_TRUE(table.next());
  EXPECT_EQ(table.cell(0), "x, y");
  EXPECT_EQ(table.cell(1), "say \"no\"");
  EXPECT_EQ(table.cell(2), "");
  EXPECT_EQ(refusal_of_rows("a,b\n1,\"2\"\n"), "nothing was refused");
  EXPECT_EQ(refusal_of_rows("a,b\n1, \"2\n"), "t.csv:2:4: error: a quote that is not closed in its line");
  EXPECT_EQ(refusal_of_rows("a,b\n1,\"2\"3\n"), "t.csv:2:3: error: '3' behind a closed quote");
  EXPECT_EQ(refusal_of_rows("a,b\n\"1\",\"two\"\n"), "t.csv:2:5: error: row: b must be a number from 0 to 10, not 'two'");
}

TEST(IsATableRead, refused_where_it_is_wrong) {
  EXPECT_EQ(refusal_of_rows(""), "t.csv:1:1: error: the file must begin with the titles of its columns");
  EXPECT_EQ(refusal_of_rows("# only this\n"), "t.csv:1:1: error: the file must begin with the titles of its columns");
  EXPECT_EQ(refusal_of_rows("a,b\n1,2\n3\n"), "t.csv:3:1: error: 1 cell in a table of 2 columns");
  EXPECT_EQ(refusal_of_rows("a,b\n1,2,3\n"), "t.csv:2:1: error: 3 cells in a table of 2 columns");
  EXPECT_EQ(refusal_of_rows("a,b\n1, two\n"), "t.csv:2:4: error: row: b must be a number from 0 to 10, not 'two'");
  EXPECT_EQ(refusal_of_rows("a,b\n1,2x\n"), "t.csv:2:3: error: row: b must be a number from 0 to 10, not '2x'");
  EXPECT_EQ(refusal_of_rows("a,b\n1,nan\n"), "t.csv:2:3: error: row: b must be a number from 0 to 10, not 'nan'");
  EXPECT_EQ(refusal_of_rows("a,b\n1,11\n"), "t.csv:2:3: error: row: b must be a number from 0 to 10, not '11'");
  EXPECT_EQ(refusal_of_rows("a,b\n1,1.5\n"), "t.csv:2:3: error: row: b must be a whole number, not '1.5'");
  EXPECT_EQ(refusal_of_rows("a,b\n" + std::string(200'000, 'x')), "t.csv:2:1: error: this line is too long for a row of a table");
  EXPECT_EQ(refusal_of_rows("a,b\n1,2\n3,4"), "nothing was refused");
}

TEST(IsATableRead, with_the_titles_that_are_known) {
  const auto check = [](const std::string& titles) {
    return refusal([&] { Table(titles, "t.csv").check_titles({"name", "count", "speed"}, {"name", "speed"}); });
  };
  EXPECT_EQ(check("speed,name"), "nothing was refused");
  EXPECT_EQ(check("name,sped"), "t.csv:1:6: error: unknown column 'sped'");
  EXPECT_EQ(check("name,speed,name"), "t.csv:1:12: error: column 'name' stands twice");
  EXPECT_EQ(check("name,count"), "t.csv:1:1: error: column 'speed' is missing");
}

TEST(IsATableRead, from_the_file_that_a_scalar_names) {
  const std::string folder = testing::TempDir();
  std::ofstream(folder + "here.csv") << "a\n1\n";
  const auto named = [&](const std::string& name) {
    std::ofstream(folder + "job.yaml") << "file: " << name << "\n";
    return Node::load_file(folder + "job.yaml").at("file");
  };
  Table table(named("here.csv"));
  EXPECT_TRUE(table.next());
  EXPECT_EQ(refusal([&] { static_cast<void>(Table(named("nowhere.csv"))); }),
            folder + "job.yaml:1:7: error: cannot read '" + folder + "nowhere.csv': No such file or directory");
  EXPECT_EQ(refusal([&] { static_cast<void>(Table(named("."))); }).substr(0, folder.size() + 25), folder + "job.yaml:1:7: error: cann");
}

}  // namespace
}  // namespace rehearse::config
