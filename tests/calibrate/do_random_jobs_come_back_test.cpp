// Random jobs on random GPUs by random stacks, traced as the program itself simulates them: what is calibrated from the traces alone makes
// the step as long as the traced one.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "tests/calibrate/measurements.hpp"

namespace rehearse::calibrate::testing {
namespace {

using cli::run_shell;

class Draw {
 public:
  explicit Draw(unsigned seed) : random_(seed) {}

  template <class Choice>
  Choice one_of(const std::vector<Choice>& choices) {
    return choices[random_() % choices.size()];
  }
  int between(int low, int high) { return low + static_cast<int>(random_() % static_cast<unsigned>(high - low + 1)); }
  double share(double low, double high) { return low + (high - low) * static_cast<double>(random_() % 1000) / 1000; }

 private:
  std::mt19937 random_;
};

struct Machine {
  std::string cluster, job, settings;
  int gpus_of_stage = 8, stages = 1;
  bool other_stack = false;
};

// Efficiencies of another GPU, and for every second job another time of the host. Stacks whose host takes none have none to come back.
Machine draw(unsigned seed) {
  Draw draw(seed);
  Machine out;
  out.cluster = draw.one_of<std::string>({"dgx-h100-ndr400", "dgx-a100-80g-hdr200", "dgx-b200-ndr400", "aws-p5-h100"});
  const std::string stack = draw.one_of<std::string>({"megatron-core", "megatron-lm", "torchtitan", "pytorch", "torch-fsdp", "nemo-2024",
                                                      "primus", "transformers", "deepspeed", "megatron-bridge", "nanotron"});
  const int tp = draw.one_of<int>({1, 1, 2, 4}), pp = draw.one_of<int>({1, 1, 2}), dp = 8 / tp / pp;
  out.gpus_of_stage = 8 / pp;
  out.stages = pp;
  const bool experts = draw.between(0, 3) == 0;
  const bool fp8 = draw.between(0, 3) == 0 && out.cluster != "dgx-a100-80g-hdr200";
  const int heads = draw.one_of<int>({8, 16, 32}), hidden = 128 * heads;
  out.job = fmt::format(
      "model: {{layers: {}, hidden: {}, heads: {}, kv_heads: {}, ffn: {}, vocab: {}, activation: {}{}}}\ncluster: {}\ngpus: 8\n"
      "parallel: {{tp: {}, pp: {}, dp: {}, ep: {}, sp: {}}}\nbatch: {{global: {}, micro: 1, sequence: {}}}\nprecision: {}\n"
      "attention: flash\nrecompute: {}\noptimizer: {{sharding: {}}}\noverlap: {{dp_gradients: {}}}\nsoftware: {}\n"
      "simulation: {{granularity: operator}}\n",
      pp * draw.between(1, 3), hidden, heads, draw.one_of<int>({heads, heads / 2}), hidden * draw.between(3, 4),
      draw.one_of<int>({32000, 50304, 128256}), draw.one_of<std::string>({"swiglu", "gelu"}),
      experts ? ", moe: {experts: 8, top_k: 2, ffn: 1024}" : "", out.cluster, tp, pp, dp, experts ? dp : 1, experts && tp > 1,
      dp * draw.between(1, 3) * pp, draw.one_of<int>({1024, 2048, 4096}), fp8 ? "fp8" : "bf16",
      draw.one_of<std::string>({"none", "none", "full", "selective"}),
      pp == 1 ? draw.one_of<std::string>({"none", "zero1", "zero3"}) : draw.one_of<std::string>({"none", "zero1"}), draw.between(0, 1) == 1,
      stack);
  const auto set = [&](const char* key, double share) {
    out.settings += fmt::format(" --set cluster.gpu.efficiency.{}={:.3f}", key, share);
  };
  set("gemm.bf16.compute", draw.share(0.45, 0.8));
  set("attention.bf16.compute", draw.share(0.35, 0.75));
  set("memory_bound.memory", draw.share(0.6, 0.9));
  if (fp8) set("gemm.fp8.compute", draw.share(0.35, 0.7));
  out.other_stack = seed % 2 == 0;
  if (out.other_stack) out.settings += fmt::format(" --set 'software.issue={} us'", draw.between(3, 30));
  return out;
}

double step_of(const std::string& json) {
  const std::size_t simulated = json.find("\"simulated\"");
  return std::stod(json.substr(json.find("\"step_s\":", simulated) + 9));
}

// One rank of each stage is traced.
TEST(RandomJobs, TakeTheTracedTimeAfterTheirTraces) {
  for (unsigned seed = 1; seed <= 24; ++seed) {
    const cli::TemporaryFolder folder;
    const Machine machine = draw(seed);
    write(folder.path() / "job.yaml", machine.job);
    const auto shell = [&](const std::string& command) { return run_shell("\"$rehearse\" " + command, folder.path()); };
    const cli::Outcome traced = shell("simulate job.yaml --json --trace-per-rank t" + machine.settings);
    ASSERT_LE(traced.code, 1) << "seed " << seed << ": " << traced.err << machine.job;  // 1: it does not fit
    std::string traces;
    for (int stage = 0; stage < machine.stages; ++stage) traces += fmt::format(" t/rank{}.json", stage * machine.gpus_of_stage);
    const cli::Outcome fitted =
        shell("calibrate trace" + traces + " --job job.yaml --gpu gpu.yaml" + (machine.other_stack ? " --software stack.yaml" : ""));
    ASSERT_EQ(fitted.code, 0) << "seed " << seed << ": " << fitted.err << machine.job;
    const cli::Outcome again = shell("simulate job.yaml --json --set 'cluster={like: " + machine.cluster + ", gpu: ./gpu.yaml}'" +
                                     (machine.other_stack ? " --set software=./stack.yaml" : ""));
    ASSERT_LE(again.code, 1) << "seed " << seed << ": " << again.err << machine.job;
    EXPECT_NEAR(step_of(again.out) / step_of(traced.out), 1, 0.01) << "seed " << seed << machine.settings << '\n'
                                                                   << machine.job << fitted.out;
  }
}

}  // namespace
}  // namespace rehearse::calibrate::testing
