// What the commands ask of a job is worked out once. Calls between files are led through counters by the linker (--wrap), so that nothing
// in the program knows of being counted.
#include <gtest/gtest.h>

#include <cstdio>

#include "places.hpp"
#include "sim/analytic/plan_cost.hpp"
#include "sim/cli/program.hpp"
#include "sim/engine/child_process.hpp"
#include "sim/engine/prices.hpp"
#include "sim/memory/predicted.hpp"
#include "workloads/compiled.hpp"
#include "workloads/step_builder.hpp"

namespace rehearse {
namespace {

struct Counts {
  double stages_compiled = 0, graphs_built = 0, graphs_priced = 0, price_books = 0, plans_priced = 0, memories = 0, texts_written = 0;
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
Prices
real_price_graph(const System& system, const workloads::Workload& workload, const CommunicationModel& model, const workloads::StepGraph& graph) asm(
    "__real__ZN8rehearse3sim11price_graphERKNS0_6SystemERKNS_9workloads8WorkloadERKNS0_18CommunicationModelERKNS4_9StepGraphE");
Prices
counted_price_graph(const System& system, const workloads::Workload& workload, const CommunicationModel& model, const workloads::StepGraph& graph) asm(
    "__wrap__ZN8rehearse3sim11price_graphERKNS0_6SystemERKNS_9workloads8WorkloadERKNS0_18CommunicationModelERKNS4_9StepGraphE");
Prices counted_price_graph(const System& system, const workloads::Workload& workload, const CommunicationModel& model,
                           const workloads::StepGraph& graph) {
  ++counts.graphs_priced;
  return real_price_graph(system, workload, model, graph);
}
// Constructors.
void real_price_book(PriceBook* book, const CommunicationModel& model, const workloads::RankGrid& grid, int stages, PriceBook::Calls* shared) asm(
    "__real__ZN8rehearse3sim9PriceBookC1ERKNS0_18CommunicationModelERKNS_9workloads8RankGridEiPSt13unordered_mapINS1_4CallE"
    "NS1_5TimesENS1_4HashESt8equal_toISA_ESaISt4pairIKSA_SB_EEE");
void counted_price_book(PriceBook* book, const CommunicationModel& model, const workloads::RankGrid& grid, int stages, PriceBook::Calls* shared) asm(
    "__wrap__ZN8rehearse3sim9PriceBookC1ERKNS0_18CommunicationModelERKNS_9workloads8RankGridEiPSt13unordered_mapINS1_4CallE"
    "NS1_5TimesENS1_4HashESt8equal_toISA_ESaISt4pairIKSA_SB_EEE");
void counted_price_book(PriceBook* book, const CommunicationModel& model, const workloads::RankGrid& grid, int stages,
                        PriceBook::Calls* shared) {
  ++counts.price_books;
  real_price_book(book, model, grid, stages, shared);
}
void real_plan_cost(PlanCost* cost, const System& system, const workloads::Workload& workload, const workloads::Compiled& compiled, PriceBook& prices, ExpertPrices* experts) asm(
    "__real__ZN8rehearse3sim8PlanCostC1ERKNS0_6SystemERKNS_9workloads8WorkloadERKNS5_8CompiledERNS0_9PriceBookEPNS0_12ExpertPricesE");
void counted_plan_cost(PlanCost* cost, const System& system, const workloads::Workload& workload, const workloads::Compiled& compiled, PriceBook& prices, ExpertPrices* experts) asm(
    "__wrap__ZN8rehearse3sim8PlanCostC1ERKNS0_6SystemERKNS_9workloads8WorkloadERKNS5_8CompiledERNS0_9PriceBookEPNS0_12ExpertPricesE");
void counted_plan_cost(PlanCost* cost, const System& system, const workloads::Workload& workload, const workloads::Compiled& compiled,
                       PriceBook& prices, ExpertPrices* experts) {
  ++counts.plans_priced;
  real_plan_cost(cost, system, workload, compiled, prices, experts);
}
MemoryResult real_predicted_memory(const Job& job, const workloads::Compiled& compiled,
                                   bool by_slots) asm("__real__ZN8rehearse3sim16predicted_memoryERKNS0_3JobERKNS_9workloads8CompiledEb");
MemoryResult counted_predicted_memory(const Job& job, const workloads::Compiled& compiled,
                                      bool by_slots) asm("__wrap__ZN8rehearse3sim16predicted_memoryERKNS0_3JobERKNS_9workloads8CompiledEb");
MemoryResult counted_predicted_memory(const Job& job, const workloads::Compiled& compiled, bool by_slots) {
  ++counts.memories;
  return real_predicted_memory(job, compiled, by_slots);
}
}  // namespace sim

namespace config {
std::string real_to_yaml(const Node* node) asm("__real__ZNK8rehearse6config4Node7to_yamlB5cxx11Ev");
std::string counted_to_yaml(const Node* node) asm("__wrap__ZNK8rehearse6config4Node7to_yamlB5cxx11Ev");
std::string counted_to_yaml(const Node* node) {
  ++counts.texts_written;
  return real_to_yaml(node);
}
}  // namespace config
// NOLINTEND(bugprone-reserved-identifier)

namespace {

// Of the whole command, in a process of its own as it is meant to be.
Counts counted(const std::string& command, const std::string& job) {
  setenv("REHEARSE_DATA", REHEARSE_SOURCE_DIR, 1);
  const std::vector<double> all = sim::run_in_child([&] {
    std::vector<std::string> words{"rehearse", command, job, "--json"};
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    const bool quiet = std::freopen("/dev/null", "w", stdout) != nullptr;
    const int code = quiet ? cli::run(static_cast<int>(words.size()), argv.data()) : -1;
    return std::vector<double>{static_cast<double>(code), counts.stages_compiled, counts.graphs_built, counts.graphs_priced,
                               counts.price_books,        counts.plans_priced,    counts.memories,     counts.texts_written};
  });
  EXPECT_EQ(all[0], 0);
  return {all[1], all[2], all[3], all[4], all[5], all[6], all[7]};
}

class OneCommand : public testing::TestWithParam<const char*> {};

// The formula is asked for two points, of which the second has no contention: its plan costs something else, at the same prices of calls.
// The resolved job is written out once, with which its hash is made. The graph is built twice: one rank of each stage, to see what the
// step communicates, then the ranks that the folding leaves.
TEST_P(OneCommand, compare_compiles_and_prices_once) {
  const Counts once = counted("compare", GetParam());
  EXPECT_EQ(once.stages_compiled, 1);
  EXPECT_EQ(once.graphs_built, 2);
  EXPECT_EQ(once.graphs_priced, 1);
  EXPECT_EQ(once.price_books, 1);
  EXPECT_EQ(once.plans_priced, 2);
  EXPECT_EQ(once.memories, 1);
  EXPECT_EQ(once.texts_written, 1);
}

// Memory by formula says beforehand whether the simulation is worth while.
TEST_P(OneCommand, simulate_compiles_once_and_asks_the_formula_for_memory_alone) {
  const Counts once = counted("simulate", GetParam());
  EXPECT_EQ(once.stages_compiled, 1);
  EXPECT_EQ(once.graphs_built, 2);
  EXPECT_EQ(once.graphs_priced, 1);
  EXPECT_EQ(once.price_books + once.plans_priced, 0);
  EXPECT_EQ(once.memories, 1);
  EXPECT_EQ(once.texts_written, 1);
}

TEST_P(OneCommand, predict_compiles_and_prices_once) {
  const Counts once = counted("predict", GetParam());
  EXPECT_EQ(once.stages_compiled, 1);
  EXPECT_EQ(once.graphs_built + once.graphs_priced, 0);
  EXPECT_EQ(once.price_books, 1);
  EXPECT_EQ(once.plans_priced, 1);
  EXPECT_EQ(once.memories, 1);
  EXPECT_EQ(once.texts_written, 1);
}

INSTANTIATE_TEST_SUITE_P(Jobs, OneCommand, testing::Values("llama2-70b-128-a100", "llama3-8b-8-h100", "mixtral-8x7b-64-h100"),
                         [](const auto& job) {
                           std::string name = job.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace rehearse
