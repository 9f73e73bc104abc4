#include <fmt/format.h>
#include <gtest/gtest.h>

#include <utility>

#include "sim/job/job.hpp"
#include "sim/validate/metric.hpp"

namespace rehearse::sim {
namespace {

// bf16 weights, fp32 gradients and 12 bytes of Adam's states per parameter: 18; passes alone have the weights and gradients in bf16: 4.
TEST(PassesAlone, HaveNoOptimizer) {
  const Job job =
      read_job(config::Node::load_text(
                   "model: {layers: 2, hidden: 1024, heads: 8, ffn: 4096, activation: swiglu, vocab: 0}\ncluster: dgx-h100-ndr400\n"
                   "gpus: 1\nparallel: {}\nbatch: {global: 1, micro: 1, sequence: 1024}\n",
                   "job.yaml"),
               "job");
  const double parameters = 2 * (4 * 1024 * 1024 + 3 * 1024 * 4096 + 2 * 1024);
  const auto peak = [&](const Metrics& wanted) { return Predicted(job).metrics(wanted).at(Metric::peak_memory_gib) * 1024 * 1024 * 1024; };
  const double step = peak({{Metric::step_s, 1}, {Metric::forward_ms, 1}, {Metric::peak_memory_gib, 1}});
  const double passes = peak({{Metric::forward_ms, 1}, {Metric::peak_memory_gib, 1}});
  EXPECT_NEAR(step - passes, (18 - 4) * parameters, 1);
  EXPECT_EQ(step, peak({{Metric::peak_memory_gib, 1}}));
}

// Adam's two moments of 4 bytes are made by the first update. With one short sequence that update is the peak: weights in bf16, gradients,
// master copies and moments.
TEST(FirstSteps, HaveNoMomentsBeforeTheirUpdate) {
  const auto peaks = [](int sequence) {
    const Job job =
        read_job(config::Node::load_text(
                     fmt::format("model: {{layers: 2, hidden: 1024, heads: 8, ffn: 4096, activation: swiglu, vocab: 0}}\n"
                                 "cluster: dgx-h100-ndr400\ngpus: 1\nparallel: {{}}\nbatch: {{global: 1, micro: 1, sequence: {}}}\n",
                                 sequence),
                     "job.yaml"),
                 "job");
    const auto peak = [&](bool first) {
      MemoryReading reading;
      if (first) reading.time = MemoryTime::first;
      return Predicted(job).metrics({{Metric::peak_memory_gib, 1}}, reading).at(Metric::peak_memory_gib) * 1024 * 1024 * 1024;
    };
    return std::pair(peak(false), peak(true));
  };
  const double parameters = 2 * (4 * 1024 * 1024 + 3 * 1024 * 4096 + 2 * 1024);
  const auto [later, first] = peaks(16384);
  EXPECT_NEAR(later - first, 8 * parameters, 1);
  EXPECT_NEAR(peaks(16).second, (2 + 4 + 12) * parameters, 1);
}

// What a callback logs that stops the clock before the update has run: the step without its optimizer, and without what the host does once.
TEST(PassesOfAStep, EndBeforeTheUpdate) {
  const Job job = read_job(config::Node::load_text("model: llama3-8b\ncluster: dgx-h100-ndr400\ngpus: 8\nparallel: {dp: 8}\n"
                                                   "batch: {global: 8, micro: 1, sequence: 4096}\noptimizer: {sharding: zero2}\n"
                                                   "software: torch-fsdp\n",
                                                   "job.yaml"),
                           "job");
  Predicted predicted(job);
  const double passes = predicted.metrics({{Metric::passes_s, 1}}).at(Metric::passes_s);
  const StepResult& step = predicted.step();
  EXPECT_GT(step.mean[Phase::optimizer], job.system.software.step_s);
  EXPECT_NEAR(passes + step.mean[Phase::optimizer], step.step_s, 1e-12);
}

}  // namespace
}  // namespace rehearse::sim
