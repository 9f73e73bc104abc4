// One `compare` asks for everything that there is about a step. Calls between files are led through counters by the linker (--wrap), so
// that nothing in the program knows of being counted.
#include <gtest/gtest.h>

#include "places.hpp"
#include "sim/compare/compare.hpp"
#include "sim/engine/prices.hpp"
#include "workloads/compiled.hpp"
#include "workloads/step_builder.hpp"

namespace rehearse {
namespace {

struct Counts {
  int stages_compiled = 0, graphs_built = 0, graphs_priced = 0;
};
Counts counts;

}  // namespace

// NOLINTBEGIN(bugprone-reserved-identifier): the linker's names
namespace workloads {
std::vector<StageProgram> real_stage_programs(const Workload& workload,
                                              Cut cut) asm("__real__ZN8rehearse9workloads14stage_programsERKNS0_8WorkloadENS0_3CutE");
std::vector<StageProgram> counted_stage_programs(const Workload& workload,
                                                 Cut cut) asm("__wrap__ZN8rehearse9workloads14stage_programsERKNS0_8WorkloadENS0_3CutE");
std::vector<StageProgram> counted_stage_programs(const Workload& workload, Cut cut) {
  ++counts.stages_compiled;
  return real_stage_programs(workload, cut);
}
StepGraph real_build_step(const Workload& workload, const Compiled& compiled, const Folding& folding,
                          int step) asm("__real__ZN8rehearse9workloads10build_stepERKNS0_8WorkloadERKNS0_8CompiledERKNS0_7FoldingEi");
StepGraph counted_build_step(const Workload& workload, const Compiled& compiled, const Folding& folding,
                             int step) asm("__wrap__ZN8rehearse9workloads10build_stepERKNS0_8WorkloadERKNS0_8CompiledERKNS0_7FoldingEi");
StepGraph counted_build_step(const Workload& workload, const Compiled& compiled, const Folding& folding, int step) {
  ++counts.graphs_built;
  return real_build_step(workload, compiled, folding, step);
}
}  // namespace workloads

namespace sim {
Prices real_price_graph(const Job& job, const CommunicationModel& model, const workloads::StepGraph& graph) asm(
    "__real__ZN8rehearse3sim11price_graphERKNS0_3JobERKNS0_18CommunicationModelERKNS_9workloads9StepGraphE");
Prices counted_price_graph(const Job& job, const CommunicationModel& model, const workloads::StepGraph& graph) asm(
    "__wrap__ZN8rehearse3sim11price_graphERKNS0_3JobERKNS0_18CommunicationModelERKNS_9workloads9StepGraphE");
Prices counted_price_graph(const Job& job, const CommunicationModel& model, const workloads::StepGraph& graph) {
  ++counts.graphs_priced;
  return real_price_graph(job, model, graph);
}
}  // namespace sim
// NOLINTEND(bugprone-reserved-identifier)

namespace sim {
namespace {

Counts counted(const std::string& name) {
  setenv("REHEARSE_DATA", REHEARSE_SOURCE_DIR, 1);
  const Job job = load_job({name, {}, {}});
  counts = {};
  static_cast<void>(compare(job));
  return counts;
}

// Built twice: one rank of each stage, to see what the step communicates, then the ranks that the folding leaves.
class OneComparison : public testing::TestWithParam<const char*> {};

TEST_P(OneComparison, compiles_and_prices_once) {
  const Counts once = counted(GetParam());
  EXPECT_EQ(once.stages_compiled, 1);
  EXPECT_EQ(once.graphs_built, 2);
  EXPECT_EQ(once.graphs_priced, 1);
}

INSTANTIATE_TEST_SUITE_P(Jobs, OneComparison, testing::Values("llama2-70b-128-a100", "llama3-8b-8-h100", "mixtral-8x7b-64-h100"),
                         [](const auto& job) {
                           std::string name = job.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace sim
}  // namespace rehearse
