// The rules as a table: each names a key of the format, and is what reading a job refuses by.
#include <gtest/gtest.h>

#include <set>

#include "sim/job/job_keys.hpp"
#include "sim/job/rules/rule.hpp"
#include "tests/job/sandbox.hpp"

namespace rehearse::sim {
namespace {

TEST(DoRulesSpeakForChecks, each_names_a_key_of_the_format) {
  const config::Shape shape = job_shape();
  std::set<std::string, std::less<>> paths;
  for (const config::Place& place : all_places(shape)) paths.insert(place.path);
  for (const Rule& rule : all_rules()) {
    EXPECT_TRUE(paths.contains(rule.path)) << rule.path;
    EXPECT_TRUE(rule.left_out.empty() || paths.contains(rule.left_out)) << rule.left_out;
  }
}

TEST(DoRulesSpeakForChecks, all_hold_for_a_job_that_is_read) {
  enter_sandbox();
  const Job job = read_text(small_job("parallel: {tp: 2, pp: 2, dp: 4, sp: true}\noptimizer: {sharding: zero1}\n"));
  EXPECT_EQ(broken_rule(job.workload, job.system), nullptr);
}

// A plan changed behind the reader's back is refused by the same rule and words as when it is written down.
TEST(DoRulesSpeakForChecks, a_changed_plan_is_refused_in_the_same_words) {
  enter_sandbox();
  const Job job = read_text(small_job("parallel: {tp: 2, pp: 2, dp: 4}\n"));
  const auto expect = [&](const auto& change, const char* path, const Settings& settings) {
    workloads::Workload workload = job.workload;
    change(workload);
    const Rule* rule = broken_rule(workload, job.system);
    ASSERT_NE(rule, nullptr) << path;
    EXPECT_EQ(rule->path, path);
    try {
      static_cast<void>(with_settings(job, settings));
      ADD_FAILURE() << path;
    } catch (const config::InputError& error) {
      EXPECT_EQ(error.message(), rule->why(workload, job.system).message);
      EXPECT_EQ(error.hint(), rule->why(workload, job.system).hint);
    }
  };
  expect([](auto& w) { w.schedule = "interleaved-1f1b"; }, "schedule", {{"schedule", "interleaved-1f1b"}});
  expect([](auto& w) { w.batch.sequence = 2047, w.parallel.sp = true; }, "batch.sequence",
         {{"batch.sequence", "2047"}, {"parallel.sp", "true"}});
  expect([](auto& w) { w.batch.global = 30; }, "batch.global", {{"batch.global", "30"}});
  expect([](auto& w) { w.overlap.ep = true; }, "overlap.ep", {{"overlap.ep", "true"}});
  expect([](auto& w) { w.parallel.vpp = 3; }, "parallel.vpp", {{"parallel.vpp", "3"}});
  expect(
      [](auto& w) {
        w.optimizer.kind = workloads::OptimizerKind::muon;
        w.optimizer.zero_stage = 3;
      },
      "optimizer.kind", {{"optimizer.sharding", "zero3"}, {"optimizer.kind", "muon"}});
  expect([](auto& w) { w.precision.attention = workloads::DType::fp8; }, "precision.attention", {{"precision", "{attention: fp8}"}});
  expect([](auto& w) { w.precision.param_gather = workloads::DType::fp32; }, "precision.param_gather",
         {{"precision", "{param_gather: fp32}"}});
  expect([](auto& w) { w.parallel.sp = w.fusions.whole_head = true; }, "parallel.sp",
         {{"parallel.sp", "true"}, {"software", "{like: megatron-core, whole_head: true}"}});
  expect([](auto& w) { w.precision.recipe = workloads::Scaling::mxfp8; }, "precision.recipe", {{"precision", "{recipe: mxfp8}"}});
  expect([](auto& w) { w.offload_layers = 2; }, "offload.layers", {{"offload.layers", "2"}});
  expect([](auto& w) { w.offload_share = 0.5; }, "offload.share", {{"offload.share", "0.5"}});
  expect([](auto& w) { w.offload_weights = true; }, "offload.weights", {{"offload.weights", "true"}});
  expect([](auto& w) { w.graphs = {workloads::GraphScope::moe_router}; }, "cuda_graphs", {{"cuda_graphs", "[moe_router]"}});
}

// A variant of a loaded job is the job loaded with the settings.
TEST(DoRulesSpeakForChecks, a_variant_is_the_job_loaded_so) {
  enter_sandbox();
  const Job job = load_job({"small", {}, {}});
  for (const Settings& settings :
       {Settings{{"recompute", "full"}}, Settings{{"recompute", "{modules: [mlp, layernorm]}"}}, Settings{{"optimizer.sharding", "zero3"}},
        Settings{{"overlap.tp", "true"}, {"overlap.tp_splits", "8"}}, Settings{{"attention", "unfused"}}, Settings{{"cuda_graphs", "true"}},
        Settings{{"simulation.steps", "3"}}, Settings{{"schedule", "gpipe"}}, Settings{{"precision", "fp16"}}}) {
    EXPECT_EQ(with_settings(job, settings).resolved.to_yaml(), load_job({"small", settings, {}}).resolved.to_yaml());
  }
}

}  // namespace
}  // namespace rehearse::sim
