#include <gtest/gtest.h>

#include "config/node.hpp"
#include "config/reference.hpp"
#include "tests/config/refusal.hpp"

namespace rehearse::config {
namespace {

constexpr const char* text =
    "model: tiny\r\n"
    "parallel:\r\n"
    "  tp: 8\r\n"
    "split: [1, {a: x}]\r\n"
    "name: \"höhe\"\r\n"
    "none:\r\n";

Node document() { return Node::load_text(text, "job.yaml"); }

void expect_at(const Node& node, int line, int column) {
  EXPECT_EQ(node.where().file, "job.yaml");
  EXPECT_EQ(node.where().line, line) << node.path();
  EXPECT_EQ(node.where().column, column) << node.path();
}

TEST(DoPositionsPointRight, from_one_and_with_windows_line_ends) {
  expect_at(document().at("model"), 1, 8);
  expect_at(document().at("parallel").at("tp"), 3, 7);
  expect_at(document().at("split").items()[1].at("a"), 4, 16);
  expect_at(document().at("none"), 6, 1);  // where its key stands
}

TEST(DoPositionsPointRight, paths) {
  EXPECT_EQ(document().path(), "");
  EXPECT_EQ(document().at("parallel").at("tp").path(), "parallel.tp");
  EXPECT_EQ(document().at("split").items()[1].at("a").path(), "split[1].a");
}

TEST(DoPositionsPointRight, the_line_and_a_caret_under_the_place) {
  EXPECT_EQ(refusal_of([] {
              document().at("parallel").at("tp").fail("too large", "use 4");
              return 0;
            }),
            "job.yaml:3:7: error: too large\n    3 |   tp: 8\n      |       ^\n  use 4");
  EXPECT_EQ(refusal_of([] {
              document().at("parallel").at("tp").fail_at_key("not needed");
              return 0;
            }),
            "job.yaml:3:3: error: not needed\n    3 |   tp: 8\n      |   ^");
}

TEST(DoPositionsPointRight, wide_characters_and_tabs_before_the_caret) {
  const Node node = Node::load_text("{\"höhe\": {a: 1,\tb: x}}", "t");
  EXPECT_EQ(refusal_of([&] { return node.at("höhe").at("b").as_int(0, 1); }),
            "t:1:20: error: höhe.b must be a whole number, not 'x'\n    1 | {\"höhe\": {a: 1,\tb: x}}\n      |                \t   ^");
}

TEST(DoPositionsPointRight, long_lines_are_cut_around_the_place) {
  const Node node = Node::load_text("{a: " + std::string(300, 'a') + ", b: x, c: " + std::string(300, 'c') + "}", "t");
  EXPECT_EQ(refusal_of([&] { return node.at("b").as_int(0, 1); }), "t:1:310: error: b must be a whole number, not 'x'\n    1 | ..." +
                                                                       std::string(55, 'a') + ", b: x, c: " + std::string(54, 'c') +
                                                                       "...\n      |    " + std::string(60, ' ') + "^");
}

TEST(DoPositionsPointRight, unknown_and_missing_keys) {
  const Node node = Node::load_text("paralel: {tp: 8}\n", "job.yaml");
  EXPECT_EQ(
      refusal_of([&] {
        node.allow_keys({"parallel", "model"});
        return 0;
      }),
      "job.yaml:1:1: error: unknown key 'paralel'\n    1 | paralel: {tp: 8}\n      | ^\n  did you mean 'parallel'? known: parallel, model");
  EXPECT_EQ(refusal_of([&] { return node.at("paralel").at("pp"); }),
            "job.yaml:1:10: error: missing key 'pp' in paralel\n    1 | paralel: {tp: 8}\n      |          ^");
}

TEST(DoPositionsPointRight, files_named_in_files) {
  const Node node = Node::load_text("faults: nowhere.yaml\n", "job.yaml");
  EXPECT_EQ(refusal_of([&] { return load_referenced(node.at("faults")); }),
            "job.yaml:1:9: error: cannot read 'nowhere.yaml': No such file or directory\n    1 | faults: nowhere.yaml\n      |         ^");
}

TEST(DoPositionsPointRight, an_absent_node_is_no_mapping) {
  EXPECT_FALSE(Node());
  EXPECT_NE(refusal_of([] { return Node().find("x"); }), "(accepted)");
  EXPECT_NE(refusal_of([] { return Node().items(); }), "(accepted)");
  EXPECT_NE(refusal_of([] { return Node().as_string(); }), "(accepted)");
}

}  // namespace
}  // namespace rehearse::config
