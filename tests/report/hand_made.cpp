#include "tests/report/hand_made.hpp"

#include <sstream>

namespace rehearse::sim {
namespace {

PhaseTimes phases(double compute_s, double tp_s, double bubble_s, double optimizer_s) {
  PhaseTimes times;
  times[Phase::compute] = compute_s;
  times[Phase::tp] = tp_s;
  times[Phase::bubble] = bubble_s;
  times[Phase::optimizer] = optimizer_s;
  return times;
}

CollectiveResult all_reduce() {
  // 64 MiB among 8 in 500 us: algbw 134.2 GB/s, busbw = algbw x 2*7/8 = 234.9 GB/s
  const double bytes = 64 * 1024.0 * 1024.0;
  const double seconds = 500e-6;
  return {.name = "all-reduce",
          .group = "tp",
          .algorithm = "ring",
          .protocol = "Simple",
          .ranks = 8,
          .bytes = bytes,
          .calls = 32,
          .seconds = seconds,
          .algbw_bytes_per_s = bytes / seconds,
          .busbw_bytes_per_s = bytes / seconds * 2 * 7 / 8};
}

TimelineEvent event(std::string_view name, std::uint32_t rank, std::uint8_t stream, Phase phase, double start_s, double end_s) {
  TimelineEvent made;
  made.name = name;
  made.rank = rank;
  made.stream = stream;
  made.phase = phase;
  made.start_s = start_s;
  made.end_s = end_s;
  return made;
}

}  // namespace

StepResult hand_made_step(const std::string& method) {
  StepResult result;
  result.method = method;
  result.step_s = 2;
  result.ranks = {{.rank = 0, .stage = 0, .ranks = 2, .phases = phases(1.2, 0.2, 0.5, 0.1)},
                  {.rank = 2, .stage = 1, .ranks = 2, .phases = phases(1.4, 0.2, 0.3, 0.1)}};
  result.collectives = {all_reduce()};
  result.step_seconds = {2};
  result.seed = 18446744073709551615U;
  result.input_hash = "0123456789abcdef";
  result.activities = 1234;
  finish(result, 8192, 4e14, 4, 100e12);
  return result;
}

Comparison hand_made_comparison() {
  Comparison made;
  made.analytic = hand_made_step("analytic");
  made.simulated = hand_made_step("simulated");
  made.simulated.step_s = 2.2;
  for (RankResult& rank : made.simulated.ranks) rank.phases[Phase::bubble] += 0.2;
  finish(made.simulated, 8192, 4e14, 4, 100e12);
  made.critical = hand_made_step("critical path");
  made.critical.step_s = 1.8;
  for (std::size_t i = 0; i < phase_count; ++i) {
    made.phases.push_back({static_cast<Phase>(i), made.analytic.mean.seconds[i], made.simulated.mean.seconds[i], ""});
  }
  made.phases[static_cast<std::size_t>(Phase::bubble)].reason = "uneven stages, and \"warm-up\" waits";
  made.difference = made.simulated.step_s / made.analytic.step_s - 1;
  made.reasons = {"stage 1 is slower than the mean"};
  return made;
}

std::shared_ptr<ListedEvents> hand_made_events() {
  auto made = std::make_shared<ListedEvents>();
  made->list = {event("F0", 0, 0, Phase::compute, 0, 1e-3), event("send F0", 0, 2, Phase::pp, 1e-3, 1.25e-3),
                event("offload \"F0\"", 0, 3, Phase::offload, 1e-3, 2e-3), event("attention all-gather", 1, 1, Phase::tp, 1.25e-3, 1.5e-3),
                event("F0", 1, 0, Phase::compute, 1.5e-3, 2.5000004e-3)};
  made->list[0].microbatch = 0;
  made->list[0].layer = 3;
  made->list[1].collective = 1;
  made->list[2].collective = 2;
  made->list[3].collective = 0;
  made->arrows = {{1, 3}};
  return made;
}

Timeline hand_made_timeline(std::shared_ptr<const TimelineEvents> events) {
  Timeline made;
  made.streams = {"compute", "tp", "pp send", "d2h"};
  made.ranks = {{.rank = 0, .stage = 0, .ranks = 2, .node = 0, .gpu_in_node = 0},
                {.rank = 2, .stage = 1, .ranks = 1, .node = 1, .gpu_in_node = 0}};
  made.collectives = {{"_allgather_base", "tp", "BFloat16", 1024, 2, {2, 3}},
                      {"send", "pp", "BFloat16", 4096, 2, {0, 2}},
                      {"Memcpy DtoH (Device -> Pinned)", "to_host", "BFloat16", 2e6, 1, {0}}};
  made.steps_s = {0, 2.5000004e-3};
  made.issue_s = 6e-6;
  made.launch_s = 2e-6;
  made.events = std::move(events);
  return made;
}

JobSummary hand_made_job() {
  return {.name = "small",
          .model = "gpt",
          .cluster = "lab",
          .gpu = "a100",
          .layout = "tp 2, pp 2, 1f1b",
          .batch = "8 sequences of 1024, micro-batch 1",
          .gpus = 4,
          .gpu_memory_bytes = 80e9,
          .seed = 7,
          .input_hash = "0123456789abcdef",
          .resolved_yaml = "model: gpt\n"};
}

std::string written(const std::string& reporter, const Report& report) {
  std::ostringstream out;
  ReporterRegistry::get(reporter).write(report, out);
  return out.str();
}

}  // namespace rehearse::sim
