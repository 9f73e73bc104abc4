// Settings as published (published/SOURCES.md), and what of them a job or model must say.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "config/data_dir.hpp"
#include "config/tree.hpp"
#include "places.hpp"
#include "sim/import/importer.hpp"
#include "sim/import/torchtitan_flavours.hpp"
#include "sim/job/job.hpp"
#include "tests/config/refusal.hpp"
#include "tests/import/import_file.hpp"
#include "workloads/model.hpp"

namespace rehearse::sim::testing {
namespace {

// As its own file holds it, so that what is imported can be imported again by the program itself.
std::string read_again(const ImportedFile& file) {
  const config::Node again = config::Node::load_text(file.finished.document.to_yaml(), "imported.yaml");
  return read_job(again, "imported").resolved.to_yaml();
}

TEST(Megatron, Llama3On8GpusWithArraysConditionsAndQuotedPairs) {
  const ImportedFile file = import_published("megatron", "llama3-8b-h100-fp8.sh", {{"cluster", "dgx-h100-ndr400"}});
  expect(file, {{"gpus", "8"},
                {"software", ""},  // --cross-entropy-loss-fusion: the stack as it is
                {"model.layers", "32"},
                {"model.kv_heads", "8"},
                {"model.ffn", "14336"},
                {"model.activation", "swiglu"},
                {"model.biases", "false"},
                {"model.tied_embeddings", "false"},
                {"batch.sequence", "8192"},
                {"batch.global", "128"},
                {"precision.compute", "fp8"},
                {"precision.gradients", "bf16"},
                {"optimizer.sharding", "zero1"},
                {"overlap.dp_gradients", "true"},
                {"attention", "flash"}});
  EXPECT_EQ(file.finished.summary, "job: 8.031 billion parameters on 8 x h100-sxm5-80g");
  EXPECT_EQ(value_of(file, "parallel.sp"), "");  // without tensor parallelism there is none
  EXPECT_TRUE(says(file.draft.without_effect, "sequence-parallel"));
  EXPECT_TRUE(says(file.draft.inferred, "NODE_RANK is '0': the script's default"));
  EXPECT_FALSE(says(file.draft.inferred, "model.dropout"));  // it says 0.0
  EXPECT_EQ(read_again(file), read_job(file.finished.document, "imported").resolved.to_yaml());
}

TEST(Megatron, Gpt3ThroughATextAndSlurm) {
  const ImportedFile file = import_published("megatron", "gpt3-175b.sh", {{"cluster", "dgx-a100-80g-hdr200"}});
  expect(file, {{"software", "megatron-lm"},
                {"gpus", "1024"},
                {"parallel.tp", "8"},
                {"parallel.pp", "16"},
                {"model.ffn", "49152"},
                {"model.vocab", "50257"},
                {"model.positions", "learned"},
                {"model.tied_embeddings", "true"},
                {"model.dropout", "0.1"},
                {"precision", "fp16"},
                {"batch.global", "1536"},
                {"overlap.pp", "false"}});
  EXPECT_TRUE(file.draft.not_understood.empty());
  EXPECT_TRUE(says(file.draft.inferred, "model.dropout: 0.1, Megatron's default"));
}

TEST(Megatron, MixtralAsOneCommandLine) {
  const ImportedFile file = import_published("megatron", "mixtral-8x7b.sh", {{"cluster", "dgx-h100-ndr400"}});
  expect(file, {{"gpus", "64"},
                {"parallel.ep", "8"},
                {"parallel.pp", "4"},
                {"model.moe.experts", "8"},
                {"model.moe.top_k", "2"},
                {"model.moe.ffn", "14336"},
                {"moe.dispatcher", "alltoall"},
                {"software.like", ""},
                {"software.fusions.cross_entropy", "false"},
                {"software.fusions.softmax", "false"}});
  EXPECT_EQ(file.finished.summary, "job: 46.7 billion parameters on 64 x h100-sxm5-80g");
}

TEST(Megatron, DeepSeekV3WithALayoutInAHereDocument) {
  const ImportedFile file = import_published("megatron", "deepseek-v3.sh", {{"cluster", "h800-deepseek"}, {"gpus", "1024"}});
  expect(file, {{"parallel.ep", "64"},
                {"parallel.etp", "1"},
                {"parallel.vpp", "2"},
                {"model.moe.first_dense", "3"},
                {"model.moe.shared", "1"},
                {"model.mla", "{q_lora: 1536, kv_lora: 512, qk_nope: 128, qk_rope: 64, v: 128}"},
                {"model.mtp", "1"},
                {"moe.dispatcher", "hierarchical"},
                {"software.experts.dispatch_kernels", "hybridep"},
                {"recompute.modules", "[mla_up_proj, layernorm]"}});
  std::vector<int> layers;
  for (const config::Node& each : file.finished.document.find_path("parallel.layers_per_stage")->items())
    layers.push_back(static_cast<int>(each.as_int(0, 99)));
  std::vector<int> expected(32, 2);  // Et*3 | (tt|)*29, m | L
  expected.front() = 3;
  expected[30] = expected[31] = 0;
  EXPECT_EQ(layers, expected);
}

TEST(Megatron, BloomByMegatronDeepSpeedWithArgumentsOf2022) {
  const ImportedFile file = import_published("megatron", "bloom-176b.slurm", {{"cluster", "jean-zay-a100-80g"}});
  expect(file, {{"gpus", "384"},
                {"model.vocab", "250880"},
                {"model.positions", "alibi"},
                {"model.ffn", "57344"},
                {"parallel.tp", "4"},
                {"parallel.layers_per_stage", "[5, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 5]"},  // as measured cases have it
                {"batch.global", "2048"},
                {"recompute", "full"},
                {"optimizer.sharding", "zero1"},
                {"software", "deepspeed-3d"},
                {"attention", "unfused"}});
  EXPECT_EQ(file.finished.summary, "job: 176.2 billion parameters on 384 x a100-sxm4-80g");
  EXPECT_TRUE(says(file.draft.not_understood, "embed-layernorm"));
  EXPECT_EQ(read_again(file), read_job(file.finished.document, "imported").resolved.to_yaml());
}

TEST(Megatron, ACommandThatAnotherShellPutsTogether) {
  const ImportedFile file = import_published("megatron", "tr1-13b.slurm", {{"cluster", "jean-zay-v100-32g"}});
  expect(file, {{"gpus", "512"},
                {"model.vocab", "50257"},
                {"parallel.pp", "4"},
                {"precision", "fp16"},
                {"recompute", "full"},
                {"optimizer.sharding", "zero1"},
                {"software", "deepspeed-3d"}});
}

TEST(Megatron, ScriptsOf2021) {
  const ImportedFile n16 = import_published("megatron", "gpt2-meg-n16.slurm", {{"cluster", "jean-zay-v100-32g"}});
  expect(n16, {{"gpus", "64"},
               {"model.layers", "64"},
               {"parallel.pp", "16"},
               {"batch.global", "1024"},
               {"recompute", "full"},
               {"optimizer.sharding", "none"},
               {"software", "megatron-2021"}});
  EXPECT_EQ(n16.finished.summary, "job: 51.97 billion parameters on 64 x v100-sxm2-32g");
  const ImportedFile n8 = import_published("megatron", "gpt2-meg-n8.slurm", {{"cluster", "jean-zay-v100-32g"}});
  expect(n8, {{"gpus", "32"}, {"model.layers", "48"}, {"batch.global", "3072"}, {"batch.micro", "6"}});
}

TEST(Megatron, TheYamlOfItsTests) {
  const ImportedFile file = import_published("megatron", "gpt3-mcore-te-tp2-pp2.yaml", {{"cluster", "dgx-h100-ndr400"}, {"gpus", "8"}});
  expect(file, {{"parallel.tp", "2"}, {"batch.micro", "4"}, {"attention", "unfused"}, {"software.fusions.gradient_accumulation", "false"}});
}

TEST(Megatron, VariablesOfWhoeverRunsIt) {
  const std::string name = std::string(::testing::TempDir()) + "variables-" + std::to_string(getpid());
  const std::string shape = "--num-layers 8 --hidden-size 512 --num-attention-heads 8 --seq-length 1024 --vocab-size 32000 --bf16";
  std::ofstream(name + ".sh") << "MBS=${MBS:-1}\ntorchrun --nproc_per_node 8 --nnodes $1 pretrain_gpt.py " << shape
                              << " --micro-batch-size $MBS --global-batch-size 64 --tensor-model-parallel-size ${TP}\n";
  ImportRequest request{name + ".sh", "", {{"TP", "4"}, {"1", "2"}}};
  Draft script = ImporterRegistry::get("megatron").read(request);
  EXPECT_EQ(script.document().find_path("gpus")->as_string(), "16");
  EXPECT_EQ(script.document().find_path("parallel.tp")->as_string(), "4");
  EXPECT_EQ(script.document().find_path("batch.micro")->as_string(), "1");
  request.variables["MBS"] = "2";
  EXPECT_EQ(ImporterRegistry::get("megatron").read(request).document().find_path("batch.micro")->as_string(), "2");

  // torchrun runs on one node where it is not told how many.
  std::ofstream(name + ".sh") << "torchrun --nproc_per_node 8 pretrain_gpt.py " << shape
                              << " --micro-batch-size 1 --global-batch-size 64 --tensor-model-parallel-size 2\n";
  EXPECT_EQ(ImporterRegistry::get("megatron").read({name + ".sh", "", {}}).document().find_path("gpus")->as_string(), "8");

  // As benchmarks that fill in ${NAME} before they start keep them.
  std::ofstream(name + ".yaml") << "MODEL_ARGS:\n  --num-layers: 8\n  --tensor-model-parallel-size: ${TP}\n  --micro-batch-size: ${MBS}\n"
                                   "  --load: ${LOAD_PATH}\n";
  const std::string refusal = config::refusal_of([&] { return ImporterRegistry::get("megatron").read({name + ".yaml", "", {}}); });
  EXPECT_NE(refusal.find(":3:"), std::string::npos) << refusal;
  EXPECT_NE(refusal.find("give it: --variable TP=... --variable MBS=..."), std::string::npos) << refusal;
  const Draft filled = ImporterRegistry::get("megatron").read({name + ".yaml", "", {{"TP", "2"}, {"MBS", "1"}}});
  EXPECT_EQ(filled.document().find_path("parallel.tp")->as_string(), "2");
  std::filesystem::remove(name + ".sh");
  std::filesystem::remove(name + ".yaml");
}

TEST(MegatronBridge, EachCellOfAMatrixIsAJob) {
  const ImportedFile bf16 = import_published("megatron-bridge", "llama3_70b_llm_pretrain.yaml", {}, "h100/num_gpus_64/bf16");
  expect(bf16, {{"model", "llama3-70b"},
                {"cluster", "dgx-h100-ndr400"},
                {"gpus", "64"},
                {"parallel.tp", "4"},
                {"parallel.pp", "4"},
                {"parallel.cp", "2"},
                {"parallel.vpp", "5"},
                {"batch.global", "128"},
                {"optimizer.sharding", "zero1"}});
  const ImportedFile fp8 = import_published("megatron-bridge", "llama3_70b_llm_pretrain.yaml", {}, "h100/num_gpus_64/fp8_cs");
  expect(fp8, {{"parallel.pp", "8"}, {"precision", "{compute: fp8, recipe: tensorwise, param_gather: fp8, gradients: bf16}"}});
  const ImportedFile fsdp = import_published("megatron-bridge", "llama3_70b_llm_pretrain.yaml", {}, "gb200/num_gpus_64/bf16");
  expect(fsdp, {{"cluster", "gb200-nvl72"}, {"optimizer.sharding", "zero3"}, {"recompute.full_layers", "20"}, {"parallel.vpp", ""}});
}

TEST(MegatronBridge, AContainerIsTheModelItself) {
  const ImportedFile file =
      import_published("megatron-bridge", "llama3-70b-sft-container.yaml", {{"cluster", "gb200-nvl72"}, {"gpus", "32"}});
  expect(file, {{"model.activation", "swiglu"},
                {"model.biases", "false"},
                {"model.tied_embeddings", "false"},
                {"model.kv_heads", "8"},
                {"parallel.pp", "8"},
                {"precision", "{compute: fp8, recipe: mxfp8}"},
                {"optimizer.sharding", "zero1"}});
  EXPECT_EQ(file.finished.summary, "job: 70.55 billion parameters on 32 x gb200");
}

// Its section peft, by Megatron-Bridge's own names; what changes no time is told.
TEST(MegatronBridge, AContainerMayHaveAdapters) {
  const std::string published = std::string(REHEARSE_SOURCE_DIR) + "/tests/import/published/llama3-70b-sft-container.yaml";
  const std::filesystem::path path = std::filesystem::temp_directory_path() / fmt::format("lora-container-{}.yaml", getpid());
  const auto with = [&](const char* adapters) {
    std::ofstream(path) << std::ifstream(published).rdbuf() << "\npeft: " << adapters << "\n";
    return import_file("megatron-bridge", path.string(), {{"cluster", "gb200-nvl72"}, {"gpus", "32"}});
  };
  const ImportedFile file =
      with("{_target_: megatron.bridge.peft.lora.LoRA, dim: 16, alpha: 32, dropout: 0.1, target_modules: [linear_qkv, linear_proj]}");
  expect(file, {{"lora.rank", "16"}, {"lora.targets", "[linear_qkv, linear_proj]"}, {"lora.dropout", "0.1"}});
  EXPECT_TRUE(says(file.draft.without_effect, "peft.alpha"));
  EXPECT_EQ(value_of(with("null"), "lora"), "");
  EXPECT_NE(config::refusal_of([&] {
              static_cast<void>(with("{_target_: megatron.bridge.peft.dora.DoRA, dim: 16}"));
            }).find("adapters other than LoRA are not simulated"),
            std::string::npos);
  std::filesystem::remove(path);
}

TEST(Nemo, Llama2WithInterpolation) {
  const ImportedFile file = import_published("nemo", "llama2-70b-nemo.yaml", {{"cluster", "dgx-h100-ndr400"}, {"model.vocab", "32000"}});
  expect(file, {{"gpus", "1024"},
                {"parallel.tp", "4"},
                {"parallel.pp", "4"},
                {"parallel.vpp", "20"},
                {"parallel.sp", "true"},
                {"batch.sequence", "4096"},
                {"model.biases", "false"},
                {"model.kv_heads", "8"},
                {"model.norm", "rmsnorm"},
                {"optimizer.sharding", "zero1"},
                {"overlap.dp_parameters", "true"},
                {"software.fusions.activation", "false"},
                {"software.fusions.dropout_add", "false"}});
  EXPECT_EQ(file.finished.summary, "job: 68.98 billion parameters on 1024 x h100-sxm5-80g");
}

TEST(Nemo, TransformerEngineChoosesTheAttentionInMegatronCore) {
  const std::string name = std::string(::testing::TempDir()) + "nemo-" + std::to_string(getpid()) + ".yaml";
  const std::string file =
      "trainer: {num_nodes: 1, devices: 8, precision: bf16}\nmodel: {num_layers: 8, hidden_size: 512, num_attention_heads: 8, "
      "micro_batch_size: 1, global_batch_size: 8, encoder_seq_length: 1024, transformer_engine: True";
  for (const auto& [core, attention] : {std::pair{"True", "flash"}, std::pair{"False", "unfused"}}) {
    std::ofstream(name) << file << ", mcore_gpt: " << core << "}\n";
    EXPECT_EQ(ImporterRegistry::get("nemo").read({name, "", {}}).document().find_path("attention")->as_string(), attention) << core;
  }
  std::filesystem::remove(name);
}

TEST(Torchtitan, Llama3) {
  const ImportedFile file =
      import_published("torchtitan", "llama3-70b.toml", {{"cluster", "dgx-a100-80g-hdr200"}, {"gpus", "64"}, {"batch.global", "64"}});
  expect(file, {{"model", "llama3-70b"},
                {"parallel.tp", "8"},
                {"parallel.sp", "true"},
                {"batch.micro", "8"},
                {"recompute", "full"},
                {"optimizer.sharding", "zero3"},
                {"precision", "bf16"},
                {"software", "torchtitan-eager"}});
}

// 64 GPUs by tp 8 are 8 replicas of 8 sequences.
TEST(Torchtitan, TheGlobalBatchFollowsFromTheWorld) {
  const std::string path = std::string(REHEARSE_SOURCE_DIR) + "/tests/import/published/llama3-70b.toml";
  const auto global = ImporterRegistry::get("torchtitan").read({path, "", {}, 64}).document().find_path("batch.global");
  ASSERT_TRUE(global);
  EXPECT_EQ(global->as_string(), "64");
}

TEST(Torchtitan, APresetOf2024WithDegreesUnderTraining) {
  const ImportedFile file =
      import_published("torchtitan", "llama3-8b-a100.toml", {{"cluster", "dgx-a100-80g-hdr200"}, {"gpus", "64"}, {"batch.global", "64"}});
  expect(file, {{"model", "llama3-8b"},
                {"batch.micro", "1"},
                {"batch.sequence", "8192"},
                {"precision", "bf16"},
                {"recompute", "selective"},
                {"optimizer.sharding", "zero3"},
                {"software", "torchtitan-eager"}});
  EXPECT_TRUE(says(file.draft.not_understood, "norm_type"));
  EXPECT_EQ(read_again(file), read_job(file.finished.document, "imported").resolved.to_yaml());
}

TEST(Torchtitan, OlderNamesFloat8AndCompilation) {
  const ImportedFile file =
      import_published("torchtitan", "llama3-405b.toml", {{"cluster", "meta-h100-500w-hbm2e"}, {"gpus", "128"}, {"batch.global", "32"}});
  expect(file, {{"batch.micro", "2"},
                {"precision.compute", "fp8"},
                {"precision.recipe", "tensorwise"},
                {"precision.param_gather", "fp8"},
                {"overlap.tp", "true"},
                {"software", "torchtitan"}});
}

TEST(Torchtitan, DeepSeekV3WithSelectiveCheckpointing) {
  const ImportedFile file =
      import_published("torchtitan", "deepseek-v3-671b.toml", {{"cluster", "h800-deepseek"}, {"gpus", "256"}, {"batch.global", "1024"}});
  expect(file, {{"model", "deepseek-v3"}, {"recompute", "selective"}, {"batch.micro", "4"}});
  // Its loss alone is compiled.
  expect(file, {{"software", "torchtitan-2025-eager"}});
  EXPECT_TRUE(says(file.draft.inferred, "'op'"));
}

TEST(Torchtitan, FlavoursAreModelsOfTheSizeThatTheyAreCalledAfter) {
  for (const TorchtitanFlavour& each : torchtitan_flavours) {
    const std::string model(each.model), flavour(each.flavour);
    const workloads::Model read = workloads::read_model(config::Node::load_file(config::data_file("workloads/models", model)), model);
    const double billions = std::stod(flavour) * (flavour.ends_with('T') ? 1000 : 1);
    EXPECT_NEAR(workloads::count_parameters(read).total / 1e9, billions, 0.06 * billions) << model;  // 14B is 14.77 billion
    EXPECT_EQ(read.moe.has_value(), each.experts) << model;
  }
}

TEST(Nanotron, TheGlobalBatchIsReplicasTimesMicroTimesAccumulation) {
  const ImportedFile file = import_published("nanotron", "tiny-llama-nanotron.yaml", {{"cluster", "dgx-h100-ndr400"}});
  expect(file, {{"gpus", "8"},
                {"batch.global", "4"},
                {"parallel.sp", "true"},
                {"schedule", "1f1b"},
                {"optimizer.sharding", "none"},
                {"software", "nanotron"},
                {"model.tied_embeddings", "true"}});
}

TEST(Nanotron, SmolLm3WithoutZero) {
  const ImportedFile file = import_published("nanotron", "smollm3-3b-nanotron.yaml", {{"cluster", "aws-p5-h100"}});
  expect(file, {{"gpus", "384"},
                {"parallel.tp", "2"},
                {"batch.global", "576"},  // 2.36 million tokens, as its README says
                {"model.kv_heads", "4"},
                {"optimizer.sharding", "none"},
                {"overlap.dp_gradients", "true"}});
  EXPECT_EQ(file.finished.summary, "job: 3.075 billion parameters on 384 x h100-sxm5-80g");
  EXPECT_TRUE(says(file.draft.inferred, "behind backward"));
  EXPECT_TRUE(says(file.draft.not_understood, "tp_recompute_allgather"));
  EXPECT_EQ(read_again(file), read_job(file.finished.document, "imported").resolved.to_yaml());
}

// As many words as the model says, but where a configuration has them padded.
TEST(Nanotron, PadsItsVocabularyWhereItIsTold) {
  const std::string published = std::string(REHEARSE_SOURCE_DIR) + "/tests/import/published/tiny-llama-nanotron.yaml";
  std::string text = config::read_file_text(published);
  const auto multiple = [](const std::string& path) {
    const ImportedFile file = import_file("nanotron", path, {{"cluster", "dgx-h100-ndr400"}});
    return read_job(file.finished.document, "imported").workload.fusions.vocab_multiple;
  };
  EXPECT_EQ(multiple(published), 1);
  const std::string model = "\nmodel:\n";
  text.insert(text.find(model) + model.size(), "  make_vocab_size_divisible_by: 64\n");
  const std::filesystem::path path = std::filesystem::temp_directory_path() / ("padded-" + std::to_string(::getpid()) + ".yaml");
  std::ofstream(path) << text;
  EXPECT_EQ(multiple(path.string()), 64);
  std::filesystem::remove(path);
}

TEST(LlmFoundry, Mpt7b) {
  const ImportedFile file = import_published("llm-foundry", "mpt-7b.yaml", {{"cluster", "dgx-a100-80g-hdr200"}, {"gpus", "64"}});
  expect(file, {{"model.ffn", "16384"},
                {"batch.sequence", "2048"},
                {"batch.micro", "8"},
                {"optimizer.sharding", "zero3"},
                {"recompute", "full"},
                {"precision.gradients", "bf16"},
                {"software", "llm-foundry"},
                {"attention", "flash"}});
  EXPECT_EQ(file.finished.summary, "job: 6.659 billion parameters on 64 x a100-sxm4-80g");
}

}  // namespace
}  // namespace rehearse::sim::testing
