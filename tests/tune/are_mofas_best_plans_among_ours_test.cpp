// MoFa's tuning (arXiv 2511.09837): its best four plans of six scenarios (Table 6), the best number of chunks (section 5.5.1) and the best
// expert parallelism for each size of a supernode (Table 8), among ours. docs/analytic-model.md has the table that this prints, and
// the reasons.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <iostream>
#include <map>

#include "places.hpp"
#include "sim/job/override.hpp"
#include "tests/analytic/mofas_device.hpp"
#include "tests/tune/spaces.hpp"

namespace rehearse::tests {
namespace {

// 126 layers and, as one each, the embedding and the head, evenly over so many chunks.
std::string layers_over(int chunks) {
  const int inner = 128 / chunks;
  std::vector<int> layers(static_cast<std::size_t>(chunks), inner);
  --layers.front();
  --layers.back();
  return fmt::format("[{}]", fmt::join(layers, ", "));
}

// LLaMA3-405B on device B, of which the first row of Table 6 sets four numbers (tests/analytic/mofas_step_table_test.cpp).
std::string llama_405b(int gpus, int batch, const std::string& space) {
  return fmt::format(R"({}gpus: {}
parallel: {{tp: 8, pp: 8, vpp: 8, sp: true}}
batch: {{global: {}, micro: 2, sequence: 8192}}
optimizer: {{sharding: zero1}}
overlap: {{tp: true, dp_gradients: {}, dp_parameters: {}}}
offload: {{activations: true}}
tune:
  goal: step
  keep: 500
  space:
{})",
                     llama_405b_on_mofas_device, gpus, batch, gpus > 64, gpus > 64, space);
}

std::vector<sim::Candidate> searched(const Tuned& tuned) {
  return sim::Search(tuned.space, tuned.spec, sim::Bounds::none()).run(1).best.all();
}

// A plan of Table 6: degrees, micro-batch, overlap of tp, the optimizer on the host or distributed (25), overlap of the replicas' exchange.
struct Plan {
  int t, p, micro;
  bool tp_overlap, on_host, dp_overlap;
  auto operator<=>(const Plan&) const = default;
};

struct Ranked {
  Plan plan;
  double step_s;
};

constexpr Plan first_of_64{8, 8, 2, true, true, false}, first_of_many{8, 8, 2, true, false, true};

struct Scenario {
  int gpus, batch;
  std::vector<Ranked> printed;  // best first
};

// The row whose optimizer takes 0.02 s has the distributed one, 2.25 s the one on the host, whatever equation it names.
const std::vector<Scenario> table_6{
    {64,
     16,
     {{first_of_64, 22.86},
      {{8, 8, 1, true, true, false}, 24.29},
      {{8, 8, 1, false, true, false}, 25.89},
      {{4, 16, 1, true, true, false}, 27.50}}},
    {64,
     64,
     {{first_of_64, 70.40},
      {{4, 16, 2, true, true, false}, 74.04},
      {{8, 8, 2, false, true, false}, 76.07},
      {{4, 16, 2, false, true, false}, 76.61}}},
    {2048,
     512,
     {{first_of_many, 21.16},
      {{8, 8, 2, false, false, true}, 22.69},
      {{8, 8, 2, true, true, true}, 23.40},
      {{8, 8, 1, true, false, false}, 23.81}}},
    {2048,
     2048,
     {{first_of_many, 68.70},
      {{8, 8, 2, true, true, true}, 70.93},
      {{4, 16, 2, true, false, true}, 72.34},
      {{8, 16, 2, true, false, true}, 73.17}}},
    {8192,
     2048,
     {{first_of_many, 21.31},
      {{8, 8, 2, false, false, true}, 22.79},
      {{8, 8, 2, true, true, true}, 23.55},
      {{8, 16, 2, true, false, true}, 24.53}}},
    {8192,
     8192,
     {{first_of_many, 68.85},
      {{8, 8, 2, true, true, true}, 71.09},
      {{4, 16, 2, true, false, true}, 72.43},
      {{8, 16, 2, true, false, true}, 73.22}}},
};

std::vector<Ranked> ranked(const Scenario& scenario) {
  const std::string space = fmt::format(
      "    parallel.tp: [4, 8, 16]\n    parallel.pp: [4, 8, 16]\n    parallel.layers_per_stage: [{}, {}, {}]\n    batch.micro: [1, 2, 4]\n"
      "    overlap.tp: both\n    optimizer: [{{device: cpu}}, {{sharding: zero1}}]\n    overlap.dp_gradients: {}\n"
      "  together: [[overlap.dp_parameters, overlap.dp_gradients]]\n",
      layers_over(32), layers_over(64), layers_over(128), scenario.gpus > 64 ? "both" : "[false]");
  const Tuned tuned(llama_405b(scenario.gpus, scenario.batch, space));
  std::vector<Ranked> all;
  for (const sim::Candidate& one : searched(tuned)) {
    const workloads::Workload w = tuned.space.job_of(one.point, one.dp).workload;
    all.push_back({{w.parallel.tp, w.parallel.pp, w.batch.micro, w.overlap.tp, w.optimizer.on_cpu, w.overlap.dp_gradients}, one.step_s});
  }
  return all;
}

// Of products of the calibrated size our best plan is the printed one. At b = 1 the paper's device is a fifth slower than one row tells.
TEST(MofasTuning, ItsBestPlansAreAmongOurs) {
  // With replicas whose gradients are summed whole, or in the open, the printed exchange is several times faster than between stages.
  constexpr double bound = 0.18, bound_of_replicas = 0.30;
  for (const Scenario& scenario : table_6) {
    const std::vector<Ranked> ours = ranked(scenario);
    const auto best = std::ranges::find_if(ours, [](const Ranked& one) { return one.plan.micro == 2; });
    ASSERT_NE(best, ours.end());
    EXPECT_EQ(best->plan, scenario.printed.front().plan) << scenario.gpus << ' ' << scenario.batch;
    for (std::size_t i = 0; i < scenario.printed.size(); ++i) {
      const Ranked& printed = scenario.printed[i];
      const auto found = std::ranges::find(ours, printed.plan, &Ranked::plan);
      ASSERT_NE(found, ours.end()) << scenario.gpus << ' ' << scenario.batch << ": " << i + 1;
      const Plan& plan = printed.plan;
      std::cout << fmt::format("| {}, {} | {} | t {} p {} b {}{}{}{} | {:.2f} | {:.2f} | {} of {} |\n", scenario.gpus, scenario.batch,
                               i + 1, plan.t, plan.p, plan.micro, plan.tp_overlap ? "" : ", tp exposed",
                               plan.on_host ? ", host" : ", distributed", scenario.gpus > 64 && !plan.dp_overlap ? ", dp exposed" : "",
                               printed.step_s, found->step_s, found - ours.begin() + 1, ours.size());
      const bool whole_or_open = scenario.gpus > 64 && (plan.on_host || !plan.dp_overlap);
      EXPECT_NEAR(found->step_s, printed.step_s, (whole_or_open ? bound_of_replicas : bound) * printed.step_s);
    }
  }
}

// "The optimal v is 8 rather than 16", for 2048 devices and four batches, of which two are Table 6's.
TEST(MofasTuning, EightChunksAreBest) {
  for (const int batch : {512, 1024, 2048, 4096}) {
    std::string splits;
    for (const int chunks : {8, 16, 32, 64, 128}) splits += (splits.empty() ? "" : ", ") + layers_over(chunks);
    const Tuned tuned(llama_405b(2048, batch,
                                 fmt::format("    parallel.vpp: [1, 2, 4, 8, 16]\n    parallel.layers_per_stage: [{}]\n"
                                             "  together: [[schedule, \"parallel.vpp > 1 ? interleaved-1f1b : 1f1b\"]]\n",
                                             splits)));
    const std::vector<sim::Candidate> ours = searched(tuned);
    ASSERT_EQ(ours.size(), 5U);
    std::map<int, double> step_s;
    for (const sim::Candidate& one : ours) step_s[tuned.space.job_of(one.point, one.dp).workload.parallel.vpp] = one.step_s;
    std::cout << fmt::format("batch {}: {}\n", batch, step_s);
    EXPECT_EQ(std::ranges::min_element(step_s, {}, [](const auto& entry) { return entry.second; })->first, 8) << batch;
  }
}

// Table 8: 22 of 24 rows have e = the supernode's size. Memory is not the question (MoFa keeps the optimizer in host memory).
TEST(MofasTuning, ExpertsOverOneSupernodeAreBest) {
  int rows = 0;
  for (const int gpus : {1024, 2048, 4096, 8192}) {
    for (const int supernode : {8, 16, 32, 64, 128, 256}) {
      config::Node document = config::Node::load_file(std::string(REHEARSE_SOURCE_DIR) + "/workloads/jobs/deepseek-v3-supernodes.yaml");
      for (const auto& [key, value] : sim::Settings{{"gpus", std::to_string(gpus)},
                                                    {"batch.global", std::to_string(gpus * 15 / 2)},
                                                    {"parallel.dp", std::to_string(gpus / 4)},
                                                    {"cluster.supernode.gpus", std::to_string(supernode)},
                                                    {"cluster.gpu.memory", "640 GiB"},
                                                    {"tune.space", "{parallel.ep: [8, 16, 32, 64, 128, 256], parallel.pp: [4, 8]}"}})
        sim::set_in_job(document, key, value);
      const Tuned tuned(document.to_yaml());
      const std::vector<sim::Candidate> ours = searched(tuned);
      ASSERT_FALSE(ours.empty());
      EXPECT_EQ(ours.front().layout[5], supernode) << gpus;
      ++rows;
    }
  }
  EXPECT_EQ(rows, 24);
}

}  // namespace
}  // namespace rehearse::tests
