// One component of each kind, each a file of this folder and nothing else: no list, no switch and no option elsewhere knows of it.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "sim/analytic/predict.hpp"
#include "sim/engine/lone_collective.hpp"
#include "sim/engine/simulate.hpp"
#include "sim/export/exporter.hpp"
#include "sim/export/left_out.hpp"
#include "sim/import/finish.hpp"
#include "sim/import/importer.hpp"
#include "sim/report/output_folder.hpp"
#include "sim/serving/formula.hpp"
#include "tests/experts/jobs.hpp"
#include "tests/wholejob/runs.hpp"

namespace rehearse::tests {
namespace {

namespace fs = std::filesystem;

// Two nodes of 8, tp 8 within a node, a stage on each. Stages are alike: no embedding, no head.
sim::Job pipeline_job(const std::string& schedule) {
  return small_job(16, "{tp: 8, pp: 2}", "{global: 12, micro: 1, sequence: 512}", "schedule: " + schedule);
}

// Backwards in another order take as long; and what each stage holds at its peak is the same.
TEST(IsAComponentOneFile, a_schedule_with_its_closed_form) {
  const sim::Job job = pipeline_job("last-first"), gpipe = pipeline_job("gpipe");
  const sim::StepResult predicted = sim::predict(job), simulated = sim::simulate_in_child(job);
  EXPECT_NEAR(simulated.step_s / predicted.step_s, 1, 1e-9);
  EXPECT_EQ(predicted.step_s, sim::predict(gpipe).step_s);
  EXPECT_NEAR(simulated.step_s / sim::simulate_in_child(gpipe).step_s, 1, 1e-9);
  EXPECT_EQ(simulated.memory.fullest()->peak_bytes(), predicted.memory.fullest()->peak_bytes());
}

// What a schedule says of itself: by pairs, and where each forward is followed by its backward, it is 1F1B.
TEST(IsAComponentOneFile, a_schedule_with_pairs) {
  const auto same = [](const auto& job_of) {
    const sim::Job job = job_of("eager"), known = job_of("1f1b");
    EXPECT_EQ(sim::predict(job).step_s, sim::predict(known).step_s);
    EXPECT_EQ(sim::simulate_in_child(job).step_s, sim::simulate_in_child(known).step_s);
  };
  same([](const std::string& schedule) {
    return expert_job(16, "{pp: 2, dp: 8, ep: 8}", "{global: 64, micro: 1, sequence: 4096}", "overlap: {ep: true}\nschedule: " + schedule);
  });
  same([](const std::string& schedule) {
    return small_job(16, "{tp: 8, dp: 2}", "{global: 16, micro: 1, sequence: 512}", "overlap: {dp_gradients: true}\nschedule: " + schedule);
  });
  EXPECT_THROW(static_cast<void>(expert_job(16, "{pp: 2, dp: 8, ep: 8}", "{global: 64, micro: 1, sequence: 4096}",
                                            "overlap: {ep: true}\nschedule: last-first")),
               config::InputError);
}

// 7 messages of 1 GiB from one port of 300 GB/s x 0.8, each after 3 us.
TEST(IsAComponentOneFile, a_collective) {
  const sim::Job job = sim::one_group(small_job(8, "{tp: 8}", "{global: 8, micro: 1, sequence: 512}", "simulation: {algorithm: star}"), 8);
  const sim::LoneCollective alone = sim::run_alone(job, workloads::CollectiveKind::broadcast, 0x1p30);
  EXPECT_EQ(alone.algorithm, "star");
  EXPECT_NEAR(alone.formula_s, 7 * (3e-6 + 0x1p30 / 240e9), 1e-12);
  EXPECT_NEAR(alone.simulated_s, alone.formula_s, 1e-9);
}

// Whatever its name: priced, folded and carried out round by round as the ring is.
TEST(IsAComponentOneFile, a_collective_with_all_that_is_known_of_the_ring) {
  const auto job_of = [](const std::string& algorithm, const std::string& how) {
    return small_job(32, "{tp: 2, pp: 2, dp: 8}", "{global: 64, micro: 1, sequence: 512}",
                     "optimizer: {sharding: zero1}\nsimulation: {algorithm: " + algorithm + ", collectives: " + how + "}");
  };
  for (const char* how : {"step", "ring", "closed"}) {
    const sim::Job hoop = job_of("hoop", how), ring = job_of("ring", how);
    EXPECT_EQ(sim::predict(hoop).step_s, sim::predict(ring).step_s) << how;
    const sim::StepResult simulated = sim::simulate_in_child(hoop), known = sim::simulate_in_child(ring);
    EXPECT_EQ(simulated.step_s, known.step_s) << how;
    EXPECT_EQ(simulated.ranks.size(), known.ranks.size()) << how;
    EXPECT_LT(simulated.ranks.size(), 32U) << how;
  }
}

// One process fails, which takes 100 s to start again, and a pod 400 s.
TEST(IsAComponentOneFile, a_recovery_policy) {
  const auto sections = [](const std::string& policy) {
    return "training: {steps: 1000}\ncheckpoint: {interval: 100, save_time: 1 s, load_time: 1 s}\nrecovery: {policy: " + policy +
           ", process: 100 s, pod: 400 s}\nfaults: {a: {source: script, faults: [{at: 1000 s, component: gpu, level: process}]}}\n";
  };
  const TenSecondJob patient(sections("patience")), replacing(sections("replace"));
  EXPECT_NEAR(sim::to_s(run_alone(patient.plan, 1).wall) - sim::to_s(run_alone(replacing.plan, 1).wall), 300, 1e-6);
}

// Between unlike instances the formula fills caches alike, as it does for the router that is known.
TEST(IsAComponentOneFile, a_router) {
  const auto predicted = [](const std::string& router) {
    const std::string text =
        "model: llama3-70b\ncluster: dgx-h100-ndr400\nsoftware: vllm\nserving:\n  pools:\n"
        "    wide: {role: both, instances: 1, parallel: {tp: 8}}\n    narrow: {role: both, instances: 2, parallel: {tp: 4}}\n"
        "  router: {prefill: " +
        router + "}\n  load: {arrivals: {poisson: 4 /s}, input: 1000, output: 200, requests: 100}\n";
    const sim::ServingJob job = sim::read_serving_job(config::Node::load_text(text, "job.yaml"), "job");
    return sim::predict_serving(job, sim::deploy(job), 1000).result.ttft.mean_s;
  };
  EXPECT_EQ(predicted("emptiest"), predicted("least-kv"));
  EXPECT_NE(predicted("emptiest"), predicted("round-robin"));
}

TEST(IsAComponentOneFile, a_reporter) {
  const fs::path folder = fs::temp_directory_path() / ("rehearse-outside-" + std::to_string(getpid()));
  const sim::StepResult predicted = sim::predict(pipeline_job("gpipe"));
  sim::JobSummary about;
  about.name = "it";
  static_cast<void>(sim::OutputFolder(folder.string()).write(sim::Report(about).own(sim::StepResults{{&predicted}})));
  std::ostringstream expected, motto;
  expected << "it takes " << predicted.step_s << " s\n";
  motto << std::ifstream(folder / "motto.txt").rdbuf();
  fs::remove_all(folder);
  EXPECT_EQ(motto.str(), expected.str());
}

// What a napkin says is the job's; what it does not say is found by reading it.
TEST(IsAComponentOneFile, an_import_and_an_export_format) {
  const sim::Job job = sim::load_job({"llama3-8b-8-h100", {{"batch.global", "24"}}, {}});
  std::ostringstream text;
  sim::ExporterRegistry::get("napkin").files(job).front().write(text);
  EXPECT_EQ(text.str(), "who: llama3-8b\nmany: 8\nat_once: 24\nlong: 8192\n");
  const sim::ReadBack back = sim::read_back(job, "napkin", text.str());
  EXPECT_TRUE(back.otherwise.empty());
  std::vector<std::string> left_out;
  for (const sim::LeftOut& each : back.left_out) left_out.push_back(each.key);
  EXPECT_EQ(left_out.front(), "cluster");
  EXPECT_NE(std::ranges::find(left_out, "parallel.cp"), left_out.end());
  EXPECT_EQ(std::ranges::find(left_out, "batch.global"), left_out.end());

  const fs::path file = fs::temp_directory_path() / ("rehearse-napkin-" + std::to_string(getpid()));
  std::ofstream(file) << "who: llama3-8b\ncoffee: spilt\nlong: 4096\n";
  sim::Draft draft = sim::ImporterRegistry::get("napkin").read({file.string(), ""});
  fs::remove(file);
  EXPECT_EQ(draft.without_effect, std::vector<std::string>{"coffee"});
  try {
    static_cast<void>(sim::finish_import(std::move(draft), {}, "it"));
    FAIL() << "a napkin without numbers is a job";
  } catch (const config::InputError& error) {
    EXPECT_NE(std::string(error.what()).find("gpus: it is not on the napkin"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace rehearse::tests
