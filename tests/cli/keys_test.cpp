// `list keys`, `schema` and the reference in docs/job-format.md speak of the same keys as the reader.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "places.hpp"
#include "tests/cli/program.hpp"

namespace rehearse::cli {
namespace {

using nlohmann::json;

constexpr const char* root = REHEARSE_SOURCE_DIR;

// Of jobs of a kind; "": of training.
json listed_keys(const std::string& kind) {
  const Outcome outcome = run_program("list keys --json" + (kind.empty() ? "" : " --kind " + kind));
  if (outcome.code != 0) throw std::runtime_error(outcome.err);
  return json::parse(outcome.out);
}

TEST(Keys, AreListedWithValuesAndDefaults) {
  std::map<std::string, json> keys;
  for (const json& key : listed_keys("")) keys[key.at("name")] = key;
  EXPECT_EQ(keys.at("parallel.tp").at("value"), "whole number, 1 to 1000000");
  EXPECT_EQ(keys.at("parallel.etp").at("default"), "tp");
  EXPECT_EQ(keys.at("overlap.tp_splits").at("default"), "4");
  EXPECT_EQ(keys.at("batch.global").at("default"), "required");
  EXPECT_EQ(keys.at("parallel.cp_comm").at("value"), "ring | all-gather | all-to-all");
  EXPECT_EQ(keys.at("checkpoint.backup.save_time").at("value"), "auto | time (5 us or 5 ms)");
  for (const char* name :
       {"model.moe.top_k", "cluster.nics.per_node", "cluster.gpu.peak.bf16", "software.memory.buckets", "recovery.process.lognormal",
        "moe.routing.zipf", "cluster.network.nodes_per_leaf", "faults.*.shape", "faults.*.faults.recovery.sigma"}) {
    EXPECT_TRUE(keys.contains(name)) << name;
  }
  EXPECT_NE(run_program("list keys").out.find("parallel.tp"), std::string::npos);
}

TEST(Keys, AJobOfALaterFormatIsRefused) {
  EXPECT_EQ(run_program("predict llama3-8b-8-h100 --set format=1").code, 0);
  const Outcome later = run_program("predict llama3-8b-8-h100 --set format=2");
  EXPECT_EQ(later.code, 2);
  EXPECT_NE(later.err.find("format must be between 1 and 1"), std::string::npos) << later.err;
}

// What programs need, without reading prose: type, unit, bounds and choices.
TEST(Keys, AreDescribedForPrograms) {
  std::map<std::string, json> keys;
  for (const json& key : listed_keys("")) keys[key.at("name")] = key;
  const auto holds = [&](const std::string& name, const json& form) {
    json key = keys.at(name);
    for (const char* prose : {"name", "value", "default", "means"}) key.erase(prose);
    EXPECT_EQ(key, form) << name;
  };
  holds("parallel.tp", {{"type", "whole"}, {"min", 1}, {"max", 1000000}});
  holds("parallel.sp", {{"type", "truth"}});
  holds("parallel.cp_comm", {{"type", "choice"}, {"choices", {"ring", "all-gather", "all-to-all"}}});
  holds("cluster.gpu.memory", {{"type", "quantity"}, {"unit", "B"}, {"min", 1e6}});
  holds("moe.routing.counts", {{"type", "list"}, {"items", {{"type", "list"}, {"items", {{"type", "number"}, {"min", 0.0}}}}}});
  holds("batch", {{"type", "mapping"}});
  holds(
      "checkpoint.save_time",
      {{"type", "either"}, {"forms", {{{"type", "choice"}, {"choices", {"auto"}}}, {{"type", "quantity"}, {"unit", "s"}, {"min", 0.0}}}}});
}

TEST(Keys, HaveASentenceEach) {
  for (const char* kind : {"", "federated", "serving"}) {
    for (const json& key : listed_keys(kind)) EXPECT_NE(key.at("means"), "") << kind << " " << key.at("name");
  }
}

// Against an independent validator, with an independent reader of YAML.
TEST(Keys, MakeASchemaThatJobsKeepAndMalformedOnesBreak) {
  const TemporaryFolder folder;
  const Outcome outcome =
      run_shell(std::string("exec /usr/bin/python3 '") + root + "/tests/cli/schema.py' \"$rehearse\" '" + root + "'", folder.path());
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
}

TEST(Keys, OfTheDocumentationAreThoseOfTheProgram) {
  const TemporaryFolder folder;
  const Outcome outcome = run_shell(std::string("exec '") + root + "/scripts/reference' --check \"$rehearse\"", folder.path());
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
}

}  // namespace
}  // namespace rehearse::cli
