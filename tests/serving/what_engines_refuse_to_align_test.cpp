// Differences between caches that an engine does not make fit; failures that come again.
#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "sim/serving/deployment.hpp"
#include "sim/serving/tune.hpp"

namespace rehearse::tests {
namespace {

// vLLM but for one line.
class EngineOfOnesOwn : public testing::Test {
 protected:
  EngineOfOnesOwn() { std::filesystem::create_directories(folder_); }
  ~EngineOfOnesOwn() override { std::filesystem::remove_all(folder_); }
  [[nodiscard]] std::string job(const std::string& cannot, const std::string& decode, const std::string& more = "") const {
    std::ofstream(folder_ / "strict.yaml") << "like: vllm\nserving: {cannot_align: " << cannot << "}\n";
    return "model: llama3-8b\ncluster: dgx-h100-ndr400\nsoftware: " + (folder_ / "strict.yaml").string() +
           "\nserving:\n  pools:\n    p: {role: prefill, parallel: {tp: 2}}\n    d: {role: decode, parallel: {tp: 2}" + decode +
           "}\n  load: {arrivals: {poisson: 2 /s}, input: 2000, output: 40, requests: 200}\n  slo: {ttft: 2 s, tpot: 50 ms}\n" + more;
  }
  [[nodiscard]] static std::string refusal_of(const std::string& text) {
    try {
      static_cast<void>(sim::read_serving_job(config::Node::load_text(text, "job.yaml"), "job"));
    } catch (const config::InputError& error) {
      return error.what();
    }
    return "accepted";
  }
  std::filesystem::path folder_ = std::filesystem::temp_directory_path() / ("rehearse-engine-" + std::to_string(getpid()));
};

TEST_F(EngineOfOnesOwn, refuses_what_it_does_not_make_fit) {
  EXPECT_EQ(refusal_of(job("[layout]", "")), "accepted");
  EXPECT_EQ(refusal_of(job("[]", ", kv: {layout: hnd}")), "accepted");
  const std::string refused = refusal_of(job("[layout, page]", ", kv: {layout: hnd}"));
  EXPECT_NE(refused.find("job.yaml:7:"), std::string::npos) << refused;
  EXPECT_NE(refused.find("strict hands nothing over between caches that differ in layout: from pool p to pool d"), std::string::npos)
      << refused;
  EXPECT_NE(refusal_of(job("[page]", ", kv: {page: 24}")).find("differ in page"), std::string::npos);
  EXPECT_NE(refusal_of(job("[number-type]", ", precision: {kv: fp8}")).find("differ in number-type"), std::string::npos);
  const std::string unknown = refusal_of(job("[layuot]", ""));
  EXPECT_NE(unknown.find("strict.yaml:2:"), std::string::npos) << unknown;
  EXPECT_NE(unknown.find("no difference between caches is called 'layuot'"), std::string::npos) << unknown;
}

// What the sources of the shipped engines say (platforms/software).
TEST(AShippedEngine, refuses_what_its_connector_does) {
  const auto handed_over = [](const std::string& engine, const std::string& prefill, const std::string& decode) {
    const std::string text = "model: llama3-8b\ncluster: dgx-h100-ndr400\nsoftware: " + engine +
                             "\nserving:\n  pools:\n    p: {role: prefill" + prefill + "}\n    d: {role: decode" + decode +
                             "}\n  load: {arrivals: {poisson: 2 /s}, input: 2000, output: 40, requests: 200}\n";
    try {
      static_cast<void>(sim::read_serving_job(config::Node::load_text(text, "job.yaml"), "job"));
    } catch (const config::InputError&) {
      return false;
    }
    return true;
  };
  for (const char* engine : {"vllm", "vllm-nixl", "vllm-mooncake", "sglang", "trtllm"}) {
    const bool any = engine == std::string("vllm");  // no connector in particular
    EXPECT_TRUE(handed_over(engine, "", "")) << engine;
    EXPECT_EQ(handed_over(engine, ", parallel: {tp: 2}", ", parallel: {tp: 4}"), engine != std::string("vllm-mooncake")) << engine;
    EXPECT_EQ(handed_over(engine, "", ", precision: {kv: fp8}"), any) << engine;
    EXPECT_EQ(handed_over(engine, "", ", kv: {page: 128}"), any || engine == std::string("vllm-nixl")) << engine;
  }
  EXPECT_FALSE(handed_over("vllm-nixl", "", ", kv: {layout: nhd}"));
}

// Plans whose heads are cut otherwise are no pairs.
TEST_F(EngineOfOnesOwn, is_tuned_without_such_pairs) {
  const auto alike = [](const sim::ServingTuning& tuning) {
    for (const sim::TunedDeployment& one : tuning.best) {
      if (one.pools.size() == 2 && one.pools.front().plan.tp != one.pools.back().plan.tp) return false;
    }
    return true;
  };
  const auto tuned = [&](const std::string& cannot) {
    const sim::ServingJob read = sim::read_serving_job(
        config::Node::load_text(job(cannot, "", "tune: {inventory: 16, tp: [1, 2, 4], confirm: 0, keep: 40}\n"), "job.yaml"), "job");
    return tune_serving(read, [](double) {});
  };
  EXPECT_FALSE(alike(tuned("[]")));
  EXPECT_TRUE(alike(tuned("[tensor-parallel, replication]")));
}

sim::ServingResult under(const std::vector<std::string>& faults, const std::string& arrivals = "{poisson: 4 /s}", int requests = 200,
                         const std::string& more = "") {
  std::string text =
      "model: llama3-8b\ncluster: dgx-h100-ndr400\nsoftware: vllm\nserving:\n  pools:\n"
      "    p: {role: prefill, parallel: {tp: 8}}\n    d: {role: decode, parallel: {tp: 8}}\n"
      "  load: {arrivals: " +
      arrivals + ", input: 4000, output: 40, requests: " + std::to_string(requests) + "}\n" + more + "simulation:\n  faults:\n";
  for (const std::string& fault : faults) text += "  - " + fault + "\n";
  const sim::ServingJob job = sim::read_serving_job(config::Node::load_text(text, "job.yaml"), "job");
  const sim::Deployment deployment = sim::deploy(job);
  const sim::ServingSetup setup = sim::setup_of(job, deployment);
  return sim::result_of(job, setup, simulate_serving(setup));
}

// As if each were written, up to the end; and those of an instance that never comes back end with the others.
TEST(FailuresThatComeAgain, are_as_many_that_come_once) {
  std::vector<std::string> each;
  for (int i = 0; i < 40; ++i) each.push_back("nic 0 slow 50 from " + std::to_string(2 + 4 * i) + " s for 1 s");
  const sim::ServingResult again = under({"nic 0 slow 50 from 2 s for 1 s every 4 s"}), written = under(each),
                           none = under({"nic 0 slow 1"});
  EXPECT_EQ(again.e2e.mean_s, written.e2e.mean_s);
  EXPECT_EQ(again.ttft.p99_s, written.ttft.p99_s);
  EXPECT_GT(again.ttft.mean_s, none.ttft.mean_s);
  const sim::ServingResult stopped = under({"instance d.0 at 5 s", "nic 0 down from 2 s for 1 s every 4 s"});
  EXPECT_LT(stopped.finished, stopped.counted);
  EXPECT_GT(under({"instance d.0 at 2 s for 1 s every 10 s"}).failures, 3);
}

// A thousand times between two requests, of which the last ones are as slow as the first: of an open and a closed loop; and while a queue
// of prompts alone is computed.
TEST(FailuresThatComeAgain, go_on_while_requests_come) {
  const std::vector<std::string> slow{"instance p.0 slow 10 from 0 s for 90 ms every 100 ms"};
  for (const char* arrivals : {"{constant: 0.005 /s}", "{closed: 1, think: 200 s}"}) {
    const sim::ServingResult again = under(slow, arrivals, 20), none = under({"nic 0 slow 1"}, arrivals, 20);
    EXPECT_GT(again.ttft.mean_s, 2 * none.ttft.mean_s) << arrivals;
  }
  const std::vector<std::string> often{"instance p.0 slow 10 from 0 s for 9 ms every 10 ms"};
  const std::string alone = "  isolate: prefill\n";
  EXPECT_GT(under(often, "at-once", 200, alone).e2e.p99_s,
            3 * under({"instance p.0 slow 1 from 0 s for 1 s"}, "at-once", 200, alone).e2e.p99_s);
  EXPECT_LT(under({"instance p.0 at 5 s", "nic 0 slow 2 from 2 s for 1 s every 4 s"}, "{closed: 4}").finished, 200);
}

TEST(FailuresThatComeAgain, are_refused_where_they_are_not_over) {
  try {
    static_cast<void>(under({"nic 0 slow 2 from 2 s for 4 s every 4 s"}));
    ADD_FAILURE();
  } catch (const config::InputError& error) {
    EXPECT_NE(std::string(error.what()).find("it comes again before it is over"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("job.yaml:11:"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace rehearse::tests
