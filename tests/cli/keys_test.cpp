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

TEST(Keys, AreListedWithValuesAndDefaults) {
  const Outcome outcome = run_program("list keys --json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  std::map<std::string, json> keys;
  for (const json& key : json::parse(outcome.out)) keys[key.at("name")] = key;
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

// Against an independent validator, with an independent reader of YAML.
TEST(Keys, MakeASchemaThatJobsKeepAndMalformedOnesBreak) {
  const TemporaryFolder folder;
  const Outcome outcome = run_shell(std::string("\"$rehearse\" schema >schema.json && exec /usr/bin/python3 '") + root +
                                        "/tests/cli/schema.py' schema.json '" + root + "'",
                                    folder.path());
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
}

TEST(Keys, OfTheDocumentationAreThoseOfTheProgram) {
  const TemporaryFolder folder;
  const Outcome outcome = run_shell(std::string("exec '") + root + "/scripts/reference' --check \"$rehearse\"", folder.path());
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
}

}  // namespace
}  // namespace rehearse::cli
