// import(export(job)) = job for what a format can say; what it cannot say is told, and with it the two are the same.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <tuple>

#include "config/data_dir.hpp"
#include "config/keys.hpp"
#include "sim/analytic/predict.hpp"
#include "sim/export/exporter.hpp"
#include "sim/export/left_out.hpp"
#include "sim/import/finish.hpp"
#include "sim/import/importer.hpp"
#include "sim/memory/tune_chunks.hpp"

namespace rehearse::sim::testing {
namespace {

std::string text_of(const std::string& format, const Job& job) {
  std::ostringstream text;
  ExporterRegistry::get(format).files(job).front().write(text);
  return text.str();
}

// The file read as anybody would read it, with what the export said is not in it.
Job imported(const std::string& format, const std::string& text, const std::vector<LeftOut>& left_out) {
  const std::filesystem::path path = std::filesystem::temp_directory_path() / ("exported-" + std::to_string(::getpid()));
  std::ofstream(path) << text;
  std::vector<std::pair<std::string, std::string>> settings;
  for (const LeftOut& each : left_out) settings.emplace_back(each.key, each.value);
  Draft draft = ImporterRegistry::get(format).read({path.string(), ""});
  std::filesystem::remove(path);
  return read_job(finish_import(std::move(draft), settings, "again").document, "again");
}

double step_of(const Job& job) { return predict(tuned(job)).step_s; }

// What neither program has to do with: machines, stack, what happens over weeks, how we simulate.
const std::set<std::string> of_no_launch_file{"cluster", "software", "simulation", "training", "faults", "recovery", "checkpoint"};

bool covers(const std::set<std::string>& keys, const std::string& key) {
  return keys.contains(key) || keys.contains(key.substr(0, key.find('.')));
}

// 20 layers of a GPU in 5 virtual stages.
TEST(RecomputedLayers, AreWrittenOfEachVirtualStage) {
  for (const auto& [layers, each, said] : {std::tuple{10, 2, true}, {7, 2, false}, {20, 4, true}}) {
    const std::string value = "{full_layers: " + std::to_string(layers) + "}";
    const Job job = load_job({"llama3-70b-64-h100", {{"recompute", value}}, {}});
    const std::string text = text_of("megatron", job);
    EXPECT_NE(text.find("--recompute-num-layers " + std::to_string(each) + " "), std::string::npos) << text;
    const ReadBack back = read_back(job, "megatron", text);
    EXPECT_EQ(std::ranges::none_of(back.left_out, [](const LeftOut& one) { return one.key == "recompute.full_layers"; }), said) << value;
    EXPECT_EQ(imported("megatron", text, back.left_out).workload.recompute.full_layers, layers);
  }
}

// Parts of the inputs of recomputed layers have a switch; the activation function alone has no name there.
TEST(Recomputation, GoesToMegatronAsFarAsItHasWords) {
  const Job parts =
      load_job({"llama3-70b-64-h100", {{"parallel.sp", "false"}, {"overlap.tp", "false"}, {"recompute", "{shards_inputs: true}"}}, {}});
  const std::string text = text_of("megatron", parts);
  EXPECT_NE(text.find("--distribute-saved-activations"), std::string::npos) << text;
  EXPECT_TRUE(imported("megatron", text, read_back(parts, "megatron", text).left_out).workload.recompute.shards_inputs);
  const Job activation = load_job({"llama3-70b-64-h100", {{"recompute", "{modules: [layernorm, mlp_act]}"}}, {}});
  const std::string modules = text_of("megatron", activation);
  EXPECT_NE(modules.find("--recompute-modules layernorm"), std::string::npos) << modules;
  EXPECT_EQ(modules.find("mlp_act"), std::string::npos);
  const ReadBack back = read_back(activation, "megatron", modules);
  EXPECT_EQ(imported("megatron", modules, back.left_out).workload.recompute.modules, activation.workload.recompute.modules);
}

// Layers with mixers, wherever attention stands between them; a list says what no number does.
TEST(Mixers, GoToMegatronAndBack) {
  const std::string delta = "{kind: gated_delta, heads: 32, head_dim: 128, groups: 16, state: 128";
  for (const auto& [model, mixer, places] : {std::tuple{"qwen3-next-80b-a3b", delta + ", attention_every: 4}", "linear-attention-freq 4"},
                                             {"qwen3-next-80b-a3b", delta + "}", "linear-attention-freq '([1]*48)'"},
                                             {"qwen3-next-80b-a3b", delta + ", attention_every: 4, first_attention: 1}", "'[1,0,1,1,1,0,"},
                                             {"nemotron-h-8b", std::string(), "hybrid-layer-pattern 'M-M-M-M*-"},
                                             {"nemotron3-super-120b-a12b", std::string(), "*EMEMEMEME/*E/*E'"}}) {
    Settings settings{{"model", model}, {"parallel", "{dp: 64}"}};
    if (!mixer.empty()) settings.emplace_back("model.mixer", mixer);
    if (mixer == delta + "}") {  // no layer has attention, nor what is of it
      for (const char* key : {"model.attention_gate", "model.qk_norm"}) settings.emplace_back(key, "false");
    }
    const Job job = load_job({"llama3-8b-64-h100", settings, {}});
    const std::string text = text_of("megatron", job);
    EXPECT_NE(text.find(places), std::string::npos) << text;
    const ReadBack back = read_back(job, "megatron", text);
    EXPECT_TRUE(std::ranges::none_of(back.left_out, [](const LeftOut& one) { return one.key.starts_with("model"); })) << text;
    const Job again = imported("megatron", text, back.left_out);
    EXPECT_EQ(config::one_line(workloads::model_keys().write(again.workload.model)),
              config::one_line(workloads::model_keys().write(job.workload.model)));
  }
}

// 128 words are what Megatron-LM pads to unasked.
TEST(Padding, GoesToMegatronAndBack) {
  for (const auto& [multiple, said] : {std::pair{128, false}, {64, true}, {1, true}}) {
    const std::string stack = "{like: megatron-core, vocab_multiple: " + std::to_string(multiple) + "}";
    const Job job = load_job({"llama3-8b-64-h100", {{"software", stack}}, {}});
    const std::string text = text_of("megatron", job);
    EXPECT_EQ(text.find("--make-vocab-size-divisible-by " + std::to_string(multiple)) != std::string::npos, said) << text;
    EXPECT_EQ(imported("megatron", text, read_back(job, "megatron", text).left_out).workload.fusions.vocab_multiple, multiple);
  }
}

// What a layer's graphs hold, scales of 8 bits, Muon, and layers whose activations go to the host.
TEST(PartsOfAPlan, GoToMegatronAndBack) {
  const Job job = load_job({"llama3-8b-64-h100",
                            {{"precision", "{compute: fp8, recipe: tensorwise, param_gather: fp8}"},
                             {"recompute", "none"},
                             {"overlap.dp_gradients", "false"},
                             {"overlap.dp_parameters", "false"},
                             {"cuda_graphs", "[attn, mlp]"},
                             {"optimizer.kind", "muon"},
                             {"offload", "{activations: true, layers: 2}"}},
                            {}});
  const std::string text = text_of("megatron", job);
  const ReadBack back = read_back(job, "megatron", text);
  EXPECT_TRUE(back.otherwise.empty()) << text;
  for (const char* key : {"precision", "cuda_graphs", "optimizer", "offload"}) {
    EXPECT_TRUE(std::ranges::none_of(back.left_out, [&](const LeftOut& one) { return one.key.starts_with(key); })) << key << '\n' << text;
  }
  const Job again = imported("megatron", text, back.left_out);
  EXPECT_EQ(again.workload.graphs, job.workload.graphs);
  EXPECT_EQ(step_of(again), step_of(job));
}

// Layers that stay in bf16 at the ends, and NVFP4; of 4 bits without its transform Megatron has no word.
TEST(PartsOfAPlan, LayersInBf16GoToMegatronAndBack) {
  for (const auto& [precision, said] : {std::pair{"{compute: fp8, recipe: mxfp8, bf16_at_start: 2}", true},
                                        {"{compute: fp4, bf16_at_end: 4}", true},
                                        {"{compute: fp4, recipe: blockwise, bf16_at_end: 1}", false}}) {
    const Job job = load_job({"llama3-8b-64-h100", {{"cluster", "dgx-b200-ndr400"}, {"precision", precision}}, {}});
    const std::string text = text_of("megatron", job);
    EXPECT_NE(text.find("--first-last-layers-bf16"), std::string::npos) << text;
    const ReadBack back = read_back(job, "megatron", text);
    EXPECT_TRUE(back.otherwise.empty()) << text;
    EXPECT_EQ(std::ranges::none_of(back.left_out, [](const LeftOut& one) { return one.key.starts_with("precision"); }), said) << precision;
    const workloads::Precision again = imported("megatron", text, back.left_out).workload.precision, types = job.workload.precision;
    EXPECT_EQ(std::tuple(again.recipe, again.bf16_at_start, again.bf16_at_end),
              std::tuple(types.recipe, types.bf16_at_start, types.bf16_at_end));
  }
}

// Experts filled up, delayed weight gradients, and what activation functions keep; the head in 8 bits Megatron cannot say.
TEST(PartsOfAPlan, OfExpertsGoToMegatronAndBack) {
  for (const char* pad : {"capacity", "32"}) {
    const Job job = load_job({"mixtral-8x7b-64-h100",
                              {{"precision", "{compute: fp8, recipe: mxfp8, activation_input: fp8, head: fp8}"},
                               {"cluster", "hgx-b200"},
                               {"gpus", "8"},
                               {"parallel", "{dp: 8, ep: 8, etp: 1}"},
                               {"schedule", "1f1b"},
                               {"batch", "{global: 64, micro: 1, sequence: 4096}"},
                               {"overlap", "{ep: true, delay_wgrad: true}"},
                               {"moe", std::string("{capacity_factor: 1.5, pad_to: ") + pad + "}"}},
                              {}});
    const std::string text = text_of("megatron", job);
    const ReadBack back = read_back(job, "megatron", text);
    EXPECT_TRUE(back.otherwise.empty()) << text;
    for (const char* key : {"precision.activation_input", "overlap", "moe"}) {
      EXPECT_TRUE(
          std::ranges::none_of(back.left_out, [&](const LeftOut& one) { return one.key.starts_with(key) && one.key != "overlap.pp"; }))
          << key << '\n'
          << text;
    }
    EXPECT_TRUE(std::ranges::any_of(back.left_out, [](const LeftOut& one) { return one.key == "precision.head"; }));
    const Job again = imported("megatron", text, back.left_out);
    EXPECT_EQ(again.workload.experts.pad_to, job.workload.experts.pad_to);
    EXPECT_TRUE(again.workload.overlap.delay_wgrad);
    EXPECT_EQ(step_of(again), step_of(job));
  }
}

// --moe-permute-fusion, with either stack of Megatron's.
TEST(PartsOfAPlan, FusedPermutationsGoToMegatronAndBack) {
  for (const char* stack : {"megatron-lm", "megatron-core"}) {
    for (const bool fused : {true, false}) {
      const std::string software = fmt::format("{{like: {}, experts: {{permutation: {}}}}}", stack, fused);
      const Job job = load_job({"mixtral-8x7b-64-h100", {{"software", software}}, {}});
      const std::string text = text_of("megatron", job);
      EXPECT_EQ(text.find("--moe-permute-fusion") != std::string::npos, fused) << text;
      const Job again = imported("megatron", text, {{"cluster", "dgx-h100-ndr400"}});
      EXPECT_EQ(again.workload.fusions.permutation, fused) << software;
      EXPECT_EQ(again.workload.fusions.cross_entropy, job.workload.fusions.cross_entropy) << software;
    }
  }
}

// torchao's float8: gathers in 8 bits have a key, scales of whole tensors are what it does, others are told apart.
TEST(PartsOfAPlan, GathersInEightBitsGoToTorchtitanAndBack) {
  const auto of = [](const std::string& precision) {
    return load_job({"llama3-8b-8-h100", {{"precision", precision}, {"optimizer", "{kind: adam, sharding: zero3}"}}, {}});
  };
  const auto says_precision = [](const LeftOut& one) { return one.key.starts_with("precision"); };
  const Job job = of("{compute: fp8, recipe: tensorwise, param_gather: fp8}");
  const std::string text = text_of("torchtitan", job);
  const ReadBack back = read_back(job, "torchtitan", text);
  EXPECT_TRUE(back.otherwise.empty()) << text;
  EXPECT_TRUE(std::ranges::none_of(back.left_out, says_precision)) << text;
  EXPECT_EQ(imported("torchtitan", text, back.left_out).workload.precision.param_gather, workloads::DType::fp8);
  const Job delayed = of("fp8");
  const ReadBack otherwise = read_back(delayed, "torchtitan", text_of("torchtitan", delayed));
  EXPECT_TRUE(otherwise.otherwise.empty());
  EXPECT_TRUE(std::ranges::any_of(otherwise.left_out, says_precision));
}

// In 4 bits Megatron's multiple depends on its version: it is told, and not written.
TEST(PartsOfAPlan, WhatExpertsAreFilledUpToInFourBitsIsToldApart) {
  const Job job = load_job({"mixtral-8x7b-64-h100", {{"precision", "fp4"}, {"cluster", "dgx-b200-ndr400"}, {"moe.pad_to", "16"}}, {}});
  const std::string text = text_of("megatron", job);
  EXPECT_EQ(text.find("padding-for-quantization"), std::string::npos) << text;
  const ReadBack back = read_back(job, "megatron", text);
  EXPECT_TRUE(std::ranges::any_of(back.left_out, [](const LeftOut& one) { return one.key == "moe.pad_to" && one.value == "16"; }));
}

class EveryShippedJob : public ::testing::TestWithParam<std::string> {
 protected:
  Job job = load_job({GetParam(), {}, {}});

  // `unsaid`: keys that a shipped job has otherwise than the program can, or sections of them.
  void expect_round_trip(const std::string& format, const std::set<std::string>& unsaid) const {
    const std::string text = text_of(format, job);
    const ReadBack back = read_back(job, format, text);
    EXPECT_TRUE(back.otherwise.empty()) << ::testing::PrintToString(back.otherwise) << '\n' << text;
    for (const LeftOut& each : back.left_out)
      EXPECT_TRUE(covers(of_no_launch_file, each.key) || covers(unsaid, each.key)) << each.key << " is left out of\n" << text;
    const Job again = imported(format, text, back.left_out);
    EXPECT_EQ(step_of(again), step_of(job));
  }
};

// Without virtual stages Megatron's sends do not run beside the next micro-batch; it recomputes as many layers in each virtual stage.
// Neither program's file says how long packed documents are, or has adapters.
TEST_P(EveryShippedJob, GoesToMegatronAndBack) {
  expect_round_trip("megatron",
                    {"overlap.pp", "moe.nodes_per_token", "moe.routing", "moe.routing.dirichlet", "moe.routing.seed", "moe.routing.senders",
                     "moe.chunks", "moe.chunk_recompute", "offload", "recompute.full_layers", "lora", "batch.document_tokens"});
}
// torchtitan always shards by FSDP2 with its overlap and sequence parallelism, has two stages a rank in a looped schedule, and models of
// its own; by its file it knows nothing of the experts' dispatcher.
TEST_P(EveryShippedJob, GoesToTorchtitanAndBack) {
  expect_round_trip("torchtitan", {"model", "parallel", "optimizer", "overlap", "schedule", "recompute", "moe", "precision", "offload",
                                   "attention", "lora", "batch.document_tokens"});
}
TEST_P(EveryShippedJob, GivesAConfigurationOfItsModel) {
  const ReadBack back = read_back(job, "hf", text_of("hf", job));
  EXPECT_TRUE(back.left_out.empty() && back.otherwise.empty())
      << (back.left_out.empty() ? "" : back.left_out.front().key) << ::testing::PrintToString(back.otherwise);
}

std::string test_name(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::ranges::replace_if(
      name, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Jobs, EveryShippedJob, ::testing::ValuesIn(config::data_names("workloads/jobs")), test_name);

}  // namespace
}  // namespace rehearse::sim::testing
