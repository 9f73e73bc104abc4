// Megatron-LM's arguments of precision, and the fields of Megatron-Bridge's mixed_precision, which have their names.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "config/node.hpp"
#include "sim/job/job.hpp"
#include "tests/import/import_file.hpp"

namespace rehearse::sim::testing {
namespace {

ImportedFile read_text(const std::string& format, const std::string& ending, const std::string& text,
                       const Settings& settings = {{"cluster", "gb200-nvl72"}, {"gpus", "8"}, {"model.vocab", "128256"}}) {
  const std::filesystem::path path = std::filesystem::temp_directory_path() / ("precision-" + std::to_string(::getpid()) + ending);
  std::ofstream(path) << text << '\n';
  ImportedFile file = import_file(format, path.string(), settings);
  std::filesystem::remove(path);
  return file;
}

ImportedFile of_arguments(const std::string& precision) {
  ImportedFile file =
      read_text("megatron", ".sh",
                "torchrun pretrain_gpt.py --num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336 --num-attention-heads 32 "
                "--seq-length 8192 --swiglu --micro-batch-size 1 --global-batch-size 64 " +
                    precision);
  (void)read_job(file.finished.document, "precision");  // a job that runs
  return file;
}

ImportedFile of_container(const std::string& precision) {
  return read_text("megatron-bridge", ".yaml",
                   "model: {num_layers: 32, hidden_size: 4096, ffn_hidden_size: 14336, num_attention_heads: 32, seq_length: 8192}\n"
                   "train: {micro_batch_size: 1, global_batch_size: 64}\n"
                   "mixed_precision: " +
                       precision);
}

TEST(ArgumentsOfPrecision, LeaveLayersAtTheEndsInBf16) {
  const std::string ends = "--first-last-layers-bf16 ";
  const std::string fp8 = "--bf16 --fp8-format hybrid --fp8-recipe tensorwise " + ends, fp4 = "--bf16 --fp4-format e2m1 " + ends;
  expect(of_arguments(fp8),
         {{"precision", "{compute: fp8, recipe: tensorwise, bf16_at_start: 1, bf16_at_end: 1}"}});  // Megatron's defaults
  expect(of_arguments(fp4 + "--num-layers-at-start-in-bf16 0 --num-layers-at-end-in-bf16 4"),
         {{"precision", "{compute: fp4, bf16_at_end: 4}"}});
  expect(of_arguments(fp4 + "--num-layers-at-end-in-bf16 0"), {{"precision", "{compute: fp4, bf16_at_start: 1}"}});
  expect(of_arguments(fp4 + "--num-layers-at-start-in-bf16 0 --num-layers-at-end-in-bf16 0"), {{"precision", "fp4"}});
  EXPECT_THROW(of_arguments(fp4 + "--num-layers-at-start-in-bf16 -1"), config::InputError);
  EXPECT_THROW(of_arguments(fp4 + "--num-layers-at-start-in-bf16 20 --num-layers-at-end-in-bf16 20"), config::InputError);
}

TEST(ArgumentsOfPrecision, LeaveNoneWhereNothingAsksForIt) {
  const ImportedFile wide = of_arguments("--bf16 --first-last-layers-bf16 --num-layers-at-end-in-bf16 4");
  expect(wide, {{"precision", "bf16"}});
  EXPECT_TRUE(says(wide.draft.without_effect, "first-last-layers-bf16 (no products"));
  const ImportedFile off = of_arguments("--bf16 --fp8-format hybrid --num-layers-at-start-in-bf16 2");
  expect(off, {{"precision", "fp8"}});
  EXPECT_TRUE(says(off.draft.without_effect, "num-layers-at-start-in-bf16 (first-last-layers-bf16 is not given"));
}

TEST(ArgumentsOfPrecision, NameTheRecipeOfFourBits) {
  expect(of_arguments("--bf16 --fp4-format e2m1 --fp4-recipe nvfp4"), {{"precision", "{compute: fp4, recipe: nvfp4}"}});
  const ImportedFile other = of_arguments("--bf16 --fp4-format e2m1 --fp4-recipe mxfp4");
  EXPECT_TRUE(says(other.draft.not_understood, "fp4-recipe mxfp4"));
}

// Cells of a matrix by the names of their precision, as get_precision_config of Megatron-Bridge's scripts/performance/utils/precision.py
// has them: parameters of mxfp8 are gathered in bf16.
TEST(CellsOfAMatrix, AreCastByTheirNames) {
  const auto of_cell = [](const std::string& name) {
    return read_text("megatron-bridge", ".yaml",
                     "perf_matrix: {gb200: {num_gpus_8: {common: {seq_length: 8192, mbs: 1, gbs: 64, tp: 1, pp: 1, cp: 1, ep: 1}, " + name +
                         ": {vp: 1}}}}",
                     {{"model", "llama3-8b"}});
  };
  for (const auto& [name, precision] : {std::pair{"bf16", "{compute: bf16, gradients: bf16}"},
                                        {"fp8_ds", "{compute: fp8, recipe: delayed, param_gather: fp8, gradients: bf16}"},
                                        {"fp8_cs", "{compute: fp8, recipe: tensorwise, param_gather: fp8, gradients: bf16}"},
                                        {"fp8_mx", "{compute: fp8, recipe: mxfp8, gradients: bf16}"},
                                        {"fp8_sc", "{compute: fp8, recipe: blockwise, gradients: bf16}"},
                                        {"nvfp4", "{compute: fp4, recipe: nvfp4, gradients: bf16}"}}) {
    const ImportedFile file = of_cell(name);
    expect(file, {{"precision", precision}});
    EXPECT_TRUE(file.draft.not_understood.empty()) << name << ::testing::PrintToString(file.draft.not_understood);
  }
  const ImportedFile other = of_cell("fp8_zz");
  expect(other, {{"precision", "{compute: fp8, gradients: bf16}"}});
  EXPECT_TRUE(says(other.draft.not_understood, "precision fp8_zz"));
}

// bf16_with_nvfp4_mixed() with its last four layers in bf16, as NVIDIA's playbook has it.
TEST(ArgumentsOfPrecision, StandInContainersByTheirFields) {
  const ImportedFile file = of_container(
      "{bf16: true, fp8: null, fp4: e2m1, fp4_recipe: nvfp4, fp8_recipe: null, first_last_layers_bf16: true, "
      "num_layers_at_start_in_bf16: 0, num_layers_at_end_in_bf16: 4}");
  expect(file, {{"precision", "{compute: fp4, recipe: nvfp4, bf16_at_end: 4}"}});
  EXPECT_TRUE(file.draft.not_understood.empty()) << ::testing::PrintToString(file.draft.not_understood);
}

}  // namespace
}  // namespace rehearse::sim::testing
