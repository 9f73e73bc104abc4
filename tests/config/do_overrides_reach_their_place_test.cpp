#include <gtest/gtest.h>

#include "config/node.hpp"
#include "tests/config/refusal.hpp"

namespace rehearse::config {
namespace {

Node job() { return Node::load_text("model: tiny\nparallel: {tp: 2, pp: 4}\n", "job.yaml"); }

Node with(const std::string& path, const std::string& value) {
  Node node = job();
  node.set(path, value);
  return node;
}

TEST(DoOverridesReachTheirPlace, replaced_and_added_in_order) {
  EXPECT_EQ(with("parallel.tp", "8").to_yaml(), "model: tiny\nparallel:\n  tp: 8\n  pp: 4\n");
  EXPECT_EQ(with("parallel.dp", "8").to_yaml(), "model: tiny\nparallel:\n  tp: 2\n  pp: 4\n  dp: 8\n");
  EXPECT_EQ(with("batch.global", "16").to_yaml(), "model: tiny\nparallel:\n  tp: 2\n  pp: 4\nbatch:\n  global: 16\n");
  EXPECT_EQ(with("model", "{layers: 2}").to_yaml(), "model:\n  layers: 2\nparallel:\n  tp: 2\n  pp: 4\n");
}

TEST(DoOverridesReachTheirPlace, null_takes_a_key_away) {
  EXPECT_EQ(with("parallel.tp", "null").to_yaml(), "model: tiny\nparallel:\n  pp: 4\n");
  EXPECT_EQ(with("model", "~").to_yaml(), "parallel:\n  tp: 2\n  pp: 4\n");
  EXPECT_EQ(refusal_of([] { return with("parallel.tpp", "null"); }),
            "--set parallel.tpp=null:1:1: error: there is no parallel.tpp to take away\n    1 | parallel.tpp=null\n      | ^\n"
            "  did you mean 'tp'? known: tp, pp");
  EXPECT_NE(refusal_of([] { return with("batch.global", "null"); }).find("there is no batch to take away"), std::string::npos);
}

TEST(DoOverridesReachTheirPlace, other_views_keep_what_they_saw) {
  const Node before = job();
  Node after = before;
  after.set("parallel.tp", "8");
  EXPECT_EQ(before.at("parallel").at("tp").as_int(0, 10), 2);
  EXPECT_EQ(after.at("parallel").at("tp").as_int(0, 10), 8);
}

TEST(DoOverridesReachTheirPlace, errors_point_into_the_override) {
  EXPECT_EQ(refusal_of([] { return with("parallel.tp", "many").at("parallel").at("tp").as_int(1, 8); }),
            "--set parallel.tp=many:1:13: error: parallel.tp must be a whole number, not 'many'\n    1 | parallel.tp=many\n"
            "      |             ^");
  EXPECT_EQ(refusal_of([] {
              with("parallel.ttp", "4").at("parallel").allow_keys({"tp", "pp"});
              return 0;
            }),
            "--set parallel.ttp=4:1:10: error: unknown key 'ttp' in parallel\n    1 | parallel.ttp=4\n      |          ^\n"
            "  did you mean 'tp'? known: tp, pp");
  EXPECT_EQ(
      refusal_of([] { return with("batch", "{a: 1, a: 2}"); }),
      "--set batch={a: 1, a: 2}:1:14: error: duplicate key 'a' (first on line 1)\n    1 | batch={a: 1, a: 2}\n      |              ^");
}

TEST(DoOverridesReachTheirPlace, paths_that_lead_nowhere) {
  EXPECT_EQ(
      refusal_of([] { return with("model.layers", "4"); }),
      "--set model.layers=4:1:1: error: cannot set 'model.layers': model is 'tiny', not a mapping\n    1 | model.layers=4\n      | ^\n"
      "  to put a mapping there: --set 'model={layers: 4}'");
  EXPECT_NE(refusal_of([] { return with("", "4"); }).find("is not a path of keys"), std::string::npos);
  EXPECT_NE(refusal_of([] { return with("parallel..tp", "4"); }).find("is not a path of keys"), std::string::npos);
  EXPECT_NE(refusal_of([] { return with("parallel.tp", " "); }).find("a value is missing after '='"), std::string::npos);
}

TEST(DoOverridesReachTheirPlace, children_move_between_documents) {
  Node node = job();
  node.set_child("batch", Node::load_text("global: 16\n", "other"));
  EXPECT_EQ(node.without("parallel").to_yaml(), "model: tiny\nbatch:\n  global: 16\n");
  EXPECT_EQ(node.at("batch").at("global").where().file, "other");
}

}  // namespace
}  // namespace rehearse::config
