// Every published case beside this file, predicted by formula. What cannot be run must be a feature that this version says it lacks.
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/uuid/detail/sha1.hpp>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <numeric>
#include <optional>
#include <regex>
#include <string>

#include "places.hpp"
#include "sim/report/expected_band.hpp"
#include "sim/report/reporter.hpp"
#include "sim/validate/validation_report.hpp"

namespace rehearse::sim {
namespace {

std::vector<std::string> case_files() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(REHEARSE_SOURCE_DIR) / "tests/measured/cases")) {
    files.push_back(entry.path().string());
  }
  std::ranges::sort(files);
  return files;
}

const Validation& validation() {
  static const Validation all = [] {
    Validation result{.outcomes = run_cases(read_cases(case_files()), {}, {}), .summaries = {}, .verdicts = {}};
    result.summaries = summarise_errors(result.outcomes);
    result.verdicts = summarise_verdicts(result.outcomes);
    return result;
  }();
  return all;
}

TEST(Measured, CasesFailOnlyForWhatIsNotSimulated) {
  for (const Outcome& outcome : validation().outcomes) {
    if (outcome.failed.empty()) continue;
    EXPECT_TRUE(outcome.failed.ends_with("is not simulated by this version")) << outcome.id << ": " << outcome.failed;
  }
}

// Regression guards, no claims: the mean absolute error of the step time when the bound was set (docs/accuracy.md), in percent, and a
// margin of one point for what a better model of another group may cost this one. An improvement should lower them.
struct Guard {
  const char* group;
  double error_pct;
};
constexpr double margin_pct = 1;

class Groups : public testing::TestWithParam<Guard> {};

TEST_P(Groups, AreNotPredictedWorseThanBefore) {
  const auto summary = std::ranges::find_if(validation().summaries, [](const ErrorSummary& each) {
    const bool step = each.metric == Metric::step_s || each.metric == Metric::passes_s;
    return each.group == GetParam().group && step && each.cases == "all";
  });
  ASSERT_NE(summary, validation().summaries.end());
  EXPECT_LE(100 * summary->mean_abs, GetParam().error_pct + margin_pct);
}

INSTANTIATE_TEST_SUITE_P(
    Measured, Groups,
    testing::Values(
        Guard{"aleph-alpha-a100", 8.2}, Guard{"dense-a100", 5.0}, Guard{"dense-a100-bloom", 5.7}, Guard{"dense-a100-bloom-early", 4.5},
        Guard{"dense-a100-vtrain", 7.5}, Guard{"dense-a100-vtrain-single", 7.0}, Guard{"dense-b200-fp8", 9.4},
        Guard{"dense-b200-node", 4.6}, Guard{"dense-gb200-bf16", 2.8}, Guard{"dense-gb200-fp4", 3.7}, Guard{"dense-gb200-fp8", 3.3},
        Guard{"dense-gb300-fp4", 4.6}, Guard{"dense-h100-bf16", 4.9}, Guard{"dense-h100-fp8", 3.1}, Guard{"dense-h200-fp8", 0.5},
        Guard{"dense-v100", 4.4}, Guard{"fsdp-a100", 4.4}, Guard{"fsdp-h100", 3.6}, Guard{"ascend-910b", 9.8},
        Guard{"dense-gb300-fp8", 2.1}, Guard{"nanotron-h100", 10.5}, Guard{"fsdp-h100-fp8", 2.6}, Guard{"launch-bound-a100-vtrain", 5.3},
        Guard{"pipeline-a100", 3.4}, Guard{"moe-b200-fp8", 7.2}, Guard{"moe-b200-node", 3.3}, Guard{"moe-gb200-bf16", 19.8},
        Guard{"moe-gb200-fp8", 10.5}, Guard{"moe-h100-bf16", 6.9}, Guard{"moe-h100-fp8", 8.4}, Guard{"moe-h800", 3.0},
        Guard{"pytorch-h100", 4.6}, Guard{"pytorch-h100-unseen", 4.2}, Guard{"internevo-a100", 3.4}, Guard{"modalities-a100", 7.6},
        Guard{"modalities-h100", 6.5}, Guard{"fsdp-h200-kempner", 11.7}, Guard{"flagperf-a100", 1.9}, Guard{"flagperf-h100", 10.3},
        Guard{"flagperf-paddle", 5.7}, Guard{"flagperf-deepspeed", 7.8}, Guard{"transformers-h100", 1.6}, Guard{"transformers-h200", 3.8},
        Guard{"transformers-experts", 6.0}, Guard{"pytorch-h100-fp8", 5.8}, Guard{"xla-h100-one", 8.6}, Guard{"fsdp-h100-olmo", 6.3},
        Guard{"deepspeed-h100", 7.6}, Guard{"pytorch-h200", 4.2}, Guard{"pythia-a100", 7.6}, Guard{"mlperf-v60-8b-more", 4.1},
        Guard{"megatron-bridge", 13.1}, Guard{"pai-qwen3-h800", 9.2}, Guard{"long-h100-fp8", 1.6}, Guard{"nemo-2024-h100", 3.2},
        Guard{"ms-swift-h20", 4.6}, Guard{"qwen-finetune-a100", 8.6}, Guard{"torchtitan-gb200", 2.5}, Guard{"ms-swift-a100", 4.7},
        Guard{"bridge-cards-h100", 18.5}, Guard{"torchtitan-experts", 5.8}, Guard{"aws-bridge", 12.1}, Guard{"aws-bridge-deepep", 11.9},
        Guard{"primus-mi355x", 8.7}, Guard{"halo-b300-moe", 10.2}, Guard{"halo-b300-dense", 3.7}, Guard{"trl-long-h100", 1.6},
        Guard{"mindformers-910b", 9.8}, Guard{"megatron-recipes", 8.1}, Guard{"marin-megatron", 4.5}, Guard{"prime-rl-moe", 12.3},
        Guard{"prime-rl-sft", 2.9}, Guard{"prime-rl-rl", 7.8}, Guard{"torchtitan-b200-experts", 3.7}, Guard{"accelerate", 6.4},
        Guard{"aws-fsdp", 44.5}, Guard{"bionemo-b200", 3.7}, Guard{"bionemo-h100", 3.9}, Guard{"bridge-cards-nvl72", 1.4},
        Guard{"colossalai", 6.5}, Guard{"deepspeed-azure-a100", 8.9}, Guard{"dgxc-finetune-h100", 0.9}, Guard{"dgxc-llama4-gb200", 5.5},
        Guard{"dgxc-llama4-h100", 4.4}, Guard{"dlperf-deepspeed", 11.8}, Guard{"dlperf-v100", 10.4}, Guard{"fast-llm", 11.1},
        Guard{"fla-h100", 35.1}, Guard{"flagperf-h800", 8.9}, Guard{"flash-attention-a100", 4.4}, Guard{"fms-acceleration", 3.7},
        Guard{"fsdp-a100-torchtitan", 3.5}, Guard{"fsdp-h100-automodel", 2.6}, Guard{"fsdp-h100-hbm2e-405b", 6.9},
        Guard{"fsdp-h100-hbm2e-bf16", 6.3}, Guard{"fsdp-h100-hbm2e-fp8", 11.1}, Guard{"fsdp-h200-fp8", 4.0}, Guard{"gaudi2-fp8", 8.5},
        Guard{"gcp-maxtext", 6.6}, Guard{"gcp-nemo", 8.4}, Guard{"glm-130b-a100", 8.3}, Guard{"kwai-a800", 1.0}, Guard{"kwai-h800", 4.4},
        Guard{"libai-v100", 7.3}, Guard{"litgpt-a100", 7.3}, Guard{"long-b200-fp8", 2.7}, Guard{"megatron-llama-a100", 14.8},
        Guard{"megatron-lm-examples", 2.6}, Guard{"megatron-lm-tests", 15.7}, Guard{"mi355x", 8.3}, Guard{"mindformers-910b-moe", 23.1},
        Guard{"mindspeed-llm", 8.7}, Guard{"ml-engineering-b200", 5.2}, Guard{"ml-engineering-h200", 8.1}, Guard{"mlperf-8b-b200-fp4", 4.7},
        Guard{"mlperf-8b-b200-fp8", 3.0}, Guard{"mlperf-8b-b300", 1.4}, Guard{"mlperf-8b-gb200", 7.3}, Guard{"mlperf-8b-gb300", 0.3},
        Guard{"mlperf-8b-h100", 29.8}, Guard{"mlperf-8b-mi35x", 2.6}, Guard{"mlperf-8b-v51-rest", 6.7}, Guard{"mlperf-v60-405b", 4.4},
        Guard{"mlperf-v60-405b-more", 4.5}, Guard{"mlperf-v60-8b", 6.3}, Guard{"mlperf-v60-amd", 3.1},
        Guard{"mlperf-v60-deepseek-v3", 12.9}, Guard{"mlperf-v60-gpt-oss", 6.8}, Guard{"mlperf-v60-gpt-oss-more", 10.0},
        Guard{"moe-b300-fp8", 9.5}, Guard{"moe-gb300-bf16", 5.2}, Guard{"moe-gb300-fp8", 6.4}, Guard{"moe-h100-automodel", 10.0},
        Guard{"ms-swift-a800", 23.2}, Guard{"nemo-2022-a100", 9.0}, Guard{"nemo-2502-b200", 10.5}, Guard{"nemo-2504-gb200", 6.1},
        Guard{"nemo-sft-h100", 6.7}, Guard{"paddlenlp-a100", 2.5}, Guard{"pai-issue-h800", 8.7}, Guard{"published-a100", 3.2},
        Guard{"published-h100", 13.2}, Guard{"smollm3-h100", 8.1}, Guard{"swiss-ai-gh200", 6.0}, Guard{"te-llama-h100", 8.0},
        Guard{"thunder-h100", 9.3}, Guard{"tinyllama-a100", 2.3}, Guard{"torchao-h100", 3.7}, Guard{"torchao-mi300x", 11.6},
        Guard{"torchprime-v6e", 14.4}, Guard{"torchtune-a100", 2.7}, Guard{"tprimat-h100", 44.2}, Guard{"tprimat-mi300x", 8.6},
        Guard{"tpu-v5e", 5.6}, Guard{"tpu-v5p", 5.4}, Guard{"tpu-v6e", 6.6}, Guard{"tpu-v6e-moe", 4.0}, Guard{"tpu-v7x", 3.2},
        Guard{"tpu-v7x-moe", 11.5}, Guard{"trainium1", 12.8}, Guard{"universal-a100", 5.1}, Guard{"universal-h100", 5.5},
        Guard{"universal-rtx-pro-6000", 30.4}, Guard{"vectorlm-a100", 9.1}, Guard{"vocab-parallel-a100", 4.4}, Guard{"xla-a100", 7.0},
        Guard{"xla-h100-bf16", 2.9}, Guard{"xla-h100-fp8", 6.7}, Guard{"xtuner-a100", 11.2}, Guard{"adana-h100", 4.6},
        Guard{"autotuning-v100", 14.9}, Guard{"bigscience-v100", 17.3}, Guard{"bigscience-v100-zero3", 15.8}, Guard{"bmtrain-v100", 32.4},
        Guard{"bridge-lora", 2.6}, Guard{"deepspeed-a800", 5.2}, Guard{"dgxc-lora-h100", 6.4}, Guard{"easycontext-a100", 14.9},
        Guard{"fms-lora-a100", 3.0}, Guard{"lightning-fsdp-v100", 2.9}, Guard{"lightning-gpt2-a100", 7.9}, Guard{"nemo-a100-four", 20.6},
        Guard{"prime-rl-b300", 9.5}, Guard{"together-b200", 8.1}, Guard{"together-b200-moe", 9.5}, Guard{"torchtitan-gb200-suite", 2.5},
        Guard{"torchtune-lora", 11.3}, Guard{"tpu-v4", 16.2}, Guard{"atorch-ds3d", 4.8}, Guard{"atorch-fsdp", 3.5},
        Guard{"mlperf-gaudi2", 2.9}, Guard{"mlperf-lora-amd", 4.7}, Guard{"mlperf-lora-blackwell", 5.0}, Guard{"mlperf-lora-h100", 6.4},
        Guard{"mlperf-lora-h200", 7.0}, Guard{"mlperf-lora-juniper", 20.2}, Guard{"mlperf-lora-l40s", 11.9},
        Guard{"mlperf-lora-nebius", 7.9}, Guard{"nemo-lora-h100", 5.1}, Guard{"torchtune-flags", 3.1}, Guard{"vultr-b200", 3.0},
        Guard{"bloomberggpt-a100", 37.5}, Guard{"dgxc-405b-h100", 3.9}, Guard{"dgxc-hf-lora-h100", 11.3},
        Guard{"flash-attention-2-a100", 2.8}, Guard{"fsdp-qlora-4090", 3.8}, Guard{"fsdp-qlora-a100", 6.4}, Guard{"fsdp-qlora-h100", 23.7},
        Guard{"llama-factory-4090", 11.7}, Guard{"llmq-h100", 6.9}, Guard{"llmq-l40s", 2.6}, Guard{"llmq-rtx-4090", 4.2},
        Guard{"llmq-rtx-5090", 6.4}, Guard{"llmq-rtx-pro-6000", 6.4}, Guard{"modded-nanogpt-h100", 6.8}, Guard{"nanochat-h100", 1.4},
        Guard{"nemotron4-15b-h100", 13.1}, Guard{"a4x-gb200", 1.8}, Guard{"bridge-archive", 11.9}, Guard{"bridge-sft", 6.0},
        Guard{"gb200-one", 13.1}, Guard{"halo-b300-lora", 11.5}, Guard{"hunyuan3-v7x", 6.2}, Guard{"k8s-b200", 7.2},
        Guard{"maxtext-mi300x", 10.8}, Guard{"muon-gb300", 3.9}, Guard{"nebius-bridge-h100", 8.3}, Guard{"optimum-gaudi2", 15.0},
        Guard{"optimum-gaudi3", 16.7}, Guard{"scaletorch-910c", 10.0}, Guard{"together-b200-report", 30.1}, Guard{"torchtitan-users", 18.7},
        Guard{"users-one", 40.7}, Guard{"v5p-long", 4.4}, Guard{"v6e-wiki", 8.5}, Guard{"v7x-again", 2.1}, Guard{"alpa-v100", 4.5},
        Guard{"bridge-mamba", 7.3}, Guard{"gdgpt-a100", 7.5}, Guard{"gdgpt-v100", 24.1}, Guard{"issues-h100", 9.0}, Guard{"llmc-a100", 5.4},
        Guard{"llmc-h100", 6.4}, Guard{"mds-a100", 13.0}, Guard{"mds-long-a100", 28.9}, Guard{"mds-v100", 28.1},
        Guard{"mindspeed-ci", 13.5}, Guard{"nanogpt", 13.6}, Guard{"qwen-lora-a100", 8.3}, Guard{"sailor-gh200", 10.9},
        Guard{"torchacc-a100", 8.2}, Guard{"benchmark-tp", 47.3}, Guard{"bridge-2608", 3.4}, Guard{"fms-lora-powerlm", 5.7},
        Guard{"hf-granite-a100", 2.8}, Guard{"lambda-fa2", 11.8}, Guard{"lambda-neox", 15.1}, Guard{"megatron-lm-gpt-7b", 6.0},
        Guard{"megatron-lm-gpt-tiny", 17.6}, Guard{"oumi-a100", 18.4}, Guard{"primus-pipeline-mi300x", 21.8},
        Guard{"primus-pipeline-mi355x", 4.5}, Guard{"primus-qwen3-mi355x", 18.3}, Guard{"small-ablation", 7.4}, Guard{"yafsdp-a100", 12.4},
        Guard{"a4x-deepseek", 9.8}, Guard{"bridge-super", 13.4}, Guard{"deepspeed-moe-a100", 42.7}, Guard{"gcp-bootcamp", 15.2},
        Guard{"gpt2-users", 14.6}, Guard{"infini-4090", 12.1}, Guard{"levanter-h200", 29.2}, Guard{"levanter-v4", 28.4},
        Guard{"levanter-v5p", 15.9}, Guard{"maxtext-ulysses-v5p", 12.1}, Guard{"moe-exp-a100", 31.2}, Guard{"olmoe-mfsdp-h100", 4.9},
        Guard{"open-lm-a100", 15.6}, Guard{"open-lm-moe-a100", 11.5}, Guard{"opensci-leonardo", 11.9}, Guard{"puro-h100", 16.3},
        Guard{"rasbt-a100", 18.8}, Guard{"simulon-gh200", 7.2}, Guard{"simulon-h100", 12.2}, Guard{"slinky-b200", 10.4},
        Guard{"station-gb300", 5.7}, Guard{"te-gpt2-ddp-mi300x", 19.4}, Guard{"te-gpt2-one", 8.4}, Guard{"te-llama3-fsdp-h200", 9.9},
        Guard{"te-llama3-fsdp-mi300x", 25.3}, Guard{"thunder-h100-1156", 12.9}, Guard{"torchtitan-issues", 13.9},
        Guard{"torchtitan-qwen3-32b", 16.8}, Guard{"amd-page-mi325x", 4.7}, Guard{"primus-aac11-mi325x", 5.6},
        Guard{"primus-gdn-mi300x", 6.1}, Guard{"primus-gpt-oss-mi355x", 9.4}, Guard{"a4xmax-deepseek-gb300", 7.0},
        Guard{"aws-qwen3-8b-b300", 6.6}, Guard{"azure-bridge-h100", 2.8}, Guard{"bridge-issue-b200", 13.5}, Guard{"ezpz-a100", 15.5},
        Guard{"fast-llm-a100", 3.5}, Guard{"gipfelsturm-gh200", 7.2}, Guard{"gpt-oss-mi355x", 5.5}, Guard{"maxtext-b200-moe", 7.4},
        Guard{"nano-gh200", 19.7}, Guard{"transformer-bench", 5.6}, Guard{"tutorial-h100", 14.4}, Guard{"tutorial-moe-h100", 21.5},
        Guard{"hunyuan3-gb300", 10.3}, Guard{"a4xmax-qwen3-gb300", 1.6}, Guard{"hunyuan3-v5p", 7.0}, Guard{"qwen3-v7x-64", 7.1},
        Guard{"trainium1-hyperpod", 13.9}, Guard{"automodel-lora", 6.8}, Guard{"automodel-hybrid", 28.8}, Guard{"mlperf-rest", 1.4},
        Guard{"llm-tii", 7.6}, Guard{"pith-train", 27.5}, Guard{"torchao-scout", 8.4}, Guard{"tpu-v5p-moe", 42.6},
        Guard{"guides-h100-a100", 13.1}, Guard{"bridge-hybrids", 6.1}, Guard{"bridge-tutorial-gb200", 1.2},
        Guard{"torchprime-e2e-v6e", 4.8}),
    [](const auto& test) {
      std::string name = test.param.group;
      std::ranges::replace(name, '-', '_');
      return name;
    });

// The project's aims (percent), which these groups meet: step times of dense Megatron and MLPerf runs on A100 and H100, FSDP, vTrain,
// models with experts, and peak memory of every group. The 90th percentile is an aim of the dense runs alone; 20 elsewhere only keeps the
// tail in sight.
struct Aim {
  const char* name;
  std::vector<std::string> groups;
  Metric metric;
  double mean_pct, p90_pct;
};

class Aims : public testing::TestWithParam<Aim> {};

TEST_P(Aims, AreMet) {
  std::vector<double> errors;
  for (const Outcome& outcome : validation().outcomes) {
    const auto measured = outcome.measured.find(GetParam().metric);
    if (!outcome.failed.empty() || measured == outcome.measured.end()) continue;
    if (!GetParam().groups.empty() && std::ranges::find(GetParam().groups, outcome.group) == GetParam().groups.end()) continue;
    errors.push_back(100 * std::abs(relative_error(outcome.predicted.at(GetParam().metric), measured->second)));
  }
  ASSERT_FALSE(errors.empty());
  std::ranges::sort(errors);
  EXPECT_LE(std::accumulate(errors.begin(), errors.end(), 0.0) / static_cast<double>(errors.size()), GetParam().mean_pct);
  EXPECT_LE(errors[(errors.size() * 9 - 1) / 10], GetParam().p90_pct);
}

INSTANTIATE_TEST_SUITE_P(
    Measured, Aims,
    testing::Values(Aim{"dense", {"dense-a100", "dense-h100-bf16", "dense-h100-fp8"}, Metric::step_s, 6, 15},
                    Aim{"fsdp", {"fsdp-a100", "fsdp-h100", "fsdp-h100-fp8"}, Metric::step_s, 8, 20},
                    Aim{"vtrain", {"dense-a100-vtrain", "dense-a100-vtrain-single", "launch-bound-a100-vtrain"}, Metric::step_s, 8, 20},
                    Aim{"experts",
                        {"moe-b200-fp8", "moe-b200-node", "moe-gb200-bf16", "moe-gb200-fp8", "moe-h100-bf16", "moe-h100-fp8", "moe-h800"},
                        Metric::step_s,
                        12,
                        25},
                    // Whole steps: the benchmark of single MoE layers allocates neither gradients nor optimizer states.
                    Aim{"memory",
                        {"dense-a100-bloom", "dense-a100-bloom-early", "dense-b200-node", "moe-b200-node", "pipeline-a100"},
                        Metric::peak_memory_gib,
                        6,
                        20},
                    Aim{"memory_simumax", {"dense-b200-node"}, Metric::peak_memory_gib, 1.5, 20},
                    // First-hand: torch.cuda.max_memory_allocated.
                    Aim{"memory_pytorch",
                        {"pytorch-h100", "pytorch-h100-unseen", "pytorch-h200", "transformers-h100", "transformers-h200",
                         "transformers-experts"},
                        Metric::peak_memory_gib,
                        1.5,
                        5},
                    Aim{"memory_deepspeed", {"deepspeed-h100", "ranks-h100"}, Metric::peak_memory_gib, 0.2, 0.5},
                    // First-hand: max_memory_reserved, by the allocator's simulation.
                    Aim{"memory_reserved", {"transformers-reserved", "deepspeed-reserved"}, Metric::peak_memory_gib, 2.5, 6}),
    [](const auto& test) { return std::string(test.param.name); });

// Of nanotron's 1,208 runs, of which more than half ran out of memory: aims 97 % right and false alarms 1 %; the second is not met.
TEST(Measured, VerdictsOnMemoryAreRight) {
  const auto& verdicts = validation().verdicts;
  const auto nanotron = std::ranges::find(verdicts, "nanotron-h100", &VerdictSummary::group);
  ASSERT_NE(nanotron, verdicts.end());
  EXPECT_GE(nanotron->right(), 0.97);
  EXPECT_LE(static_cast<double>(nanotron->false_alarms) / nanotron->ran, 0.02);
  // Everywhere else what was timed ran.
  const VerdictSummary& all = verdicts.back();
  EXPECT_LE(static_cast<double>(all.false_alarms - nanotron->false_alarms) / (all.ran - nanotron->ran), 0.05);
}

// As scripts/fit: fitted when the first hexadecimal digit of the SHA-1 of its id is below 8.
bool is_left_out(const std::string& id) {
  boost::uuids::detail::sha1 sha1;
  sha1.process_bytes(id.data(), id.size());
  unsigned digest[5];
  sha1.get_digest(digest);
  return digest[0] >> 28 >= 8;
}

// How many of a metric's left-out measurements lie inside the band beside their prediction.
template <class BandOf>
void count_inside(Metric metric, const BandOf& band_of, int& inside, int& all) {
  const MeasuredErrors errors;
  const std::vector<MeasuredCase> cases = read_cases(case_files());
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const Outcome& outcome = validation().outcomes[i];
    const auto measured = outcome.measured.find(metric);
    if (!outcome.failed.empty() || measured == outcome.measured.end() || !is_left_out(outcome.id)) continue;
    const std::optional<ErrorBand> band = band_of(errors.bands(read_job(cases[i].job, cases[i].id, cases[i].models), {}));
    ASSERT_TRUE(band) << outcome.id;
    const double factor = measured->second / outcome.predicted.at(metric);
    inside += band->low <= factor && factor <= band->high ? 1 : 0;
    ++all;
  }
}

// The band beside every answer holds what it promises where nothing was fitted: four in five.
TEST(Measured, BandsCoverTheLeftOutHalf) {
  int inside = 0, all = 0;
  ASSERT_NO_FATAL_FAILURE(count_inside(
      Metric::step_s, [](const ExpectedBands& bands) { return bands.step; }, inside, all));
  EXPECT_GT(all, 500);
  EXPECT_NEAR(static_cast<double>(inside) / all, 0.8, 0.05);
}

// Of what was left out of the rows, as scripts/bands counted when it wrote them.
std::map<std::string, int> covered() {
  std::ifstream page(std::filesystem::path(REHEARSE_SOURCE_DIR) / "docs/accuracy.md");
  std::map<std::string, int> inside;
  for (std::string line; std::getline(page, line);) {
    const std::regex row(R"(\| step \| ([^|]*) \| \d+ \| (\d+) % \|.*)");
    if (std::smatch found; std::regex_match(line, found, row)) inside[found[1]] = std::stoi(found[2]);
  }
  return inside;
}

// Whole stacks and sources, and what links reach: within 5 points of four in five; as they were at first contact, before what was wrong was
// mended, two thirds at least.
TEST(Measured, BandsCoverTheNextStackAndSource) {
  const std::map<std::string, int> inside = covered();
  EXPECT_NEAR(inside.at("the stack left out, each in turn"), 80, 5);
  EXPECT_NEAR(inside.at("the source left out, each in turn"), 80, 5);
  EXPECT_NEAR(inside.at("network by line rates"), 80, 5);
  EXPECT_GE(inside.at("the source left out, as it was at first contact"), 68);
}

// Families of GPUs without lines of their own, in rows that the others give: within 5 points of four in five, whatever is known.
TEST(Measured, BandsCoverTheNextGpuByItsDataSheet) {
  const std::map<std::string, int> inside = covered();
  const std::string sheet = "GPU by data sheet, its family left out: ";
  for (const char* known : {"all", "stack measured, dense", "stack measured, experts", "stack not, dense", "stack not, experts"}) {
    EXPECT_NEAR(inside.at(sheet + known), 80, 5) << known;
  }
}

// The band of a peak likewise, around what was counted.
TEST(Measured, BandsOfMemoryCoverTheLeftOutHalf) {
  int inside = 0, all = 0;
  const auto first = [](const ExpectedBands& bands) {
    return bands.peaks.empty() ? std::nullopt : std::optional(bands.peaks.front().band);
  };
  ASSERT_NO_FATAL_FAILURE(count_inside(Metric::peak_memory_gib, first, inside, all));
  EXPECT_GT(all, 300);
  EXPECT_NEAR(static_cast<double>(inside) / all, 0.8, 0.05);
}

// How sure a verdict is: of the left-out runs of stacks of which many ran out, as many ran as were said to, also where it was not clear.
TEST(Measured, VerdictsAreAsSureAsTheySay) {
  double said = 0, ran = 0, unclear_said = 0, unclear_ran = 0;
  int all = 0, unclear = 0;
  for (const Outcome& outcome : validation().outcomes) {
    if (!outcome.failed.empty() || !outcome.surely_fits || !is_left_out(outcome.id)) continue;
    if (outcome.group != "nanotron-h100" && outcome.group != "aleph-alpha-a100") continue;
    ++all;
    said += outcome.chance;
    ran += *outcome.ran ? 1 : 0;
    if (outcome.chance < 0.05 || outcome.chance > 0.95) continue;
    ++unclear;
    unclear_said += outcome.chance;
    unclear_ran += *outcome.ran ? 1 : 0;
  }
  EXPECT_GT(all, 500);
  EXPECT_NEAR(said / all, ran / all, 0.02);
  EXPECT_GT(unclear, 30);
  EXPECT_NEAR(unclear_said / unclear, unclear_ran / unclear, 0.1);
}

// What a search takes runs: of the left-out runs that surely fit none in twenty ran out of memory, and the margin costs few that ran.
TEST(Measured, WhatSurelyFitsRan) {
  int surely = 0, ran_out = 0, ran = 0, lost = 0;
  for (const Outcome& outcome : validation().outcomes) {
    if (!outcome.failed.empty() || !outcome.surely_fits || !is_left_out(outcome.id)) continue;
    surely += *outcome.surely_fits ? 1 : 0;
    ran_out += *outcome.surely_fits && !*outcome.ran ? 1 : 0;
    ran += *outcome.ran && *outcome.said_to_fit ? 1 : 0;
    lost += *outcome.ran && *outcome.said_to_fit && !*outcome.surely_fits ? 1 : 0;
  }
  EXPECT_GT(surely, 300);
  EXPECT_LE(ran_out, surely / 20);
  EXPECT_LE(lost, ran / 10);
}

TEST(Measured, SummaryIsPrinted) {
  Report report;
  report.add(&validation()).own(SummaryAlone{});
  ReporterRegistry::get("validation-console").write(report, std::cout);
  EXPECT_FALSE(validation().summaries.empty());
}

}  // namespace
}  // namespace rehearse::sim
