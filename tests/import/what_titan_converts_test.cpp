// torchtitan's converters: linear modules, which routed experts are not, and grouped products of experts, in float8 and MXFP8.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <tuple>

#include "sim/job/job.hpp"
#include "tests/import/import_file.hpp"

namespace rehearse::sim::testing {
namespace {

ImportedFile titan(const std::string& model, const std::string& converters, const std::string& rest = "") {
  const std::filesystem::path path = std::filesystem::temp_directory_path() / ("titan-" + std::to_string(::getpid()) + ".toml");
  std::ofstream(path) << "[model]\n"
                      << model << "\nconverters = " << converters << R"(
[training]
local_batch_size = 1
seq_len = 4096
mixed_precision_reduce = "float32"
[activation_checkpoint]
mode = "none"
)" << rest;
  ImportedFile file = import_file("torchtitan", path.string(), {{"cluster", "dgx-b200-ndr400"}, {"gpus", "8"}, {"batch.global", "8"}});
  std::filesystem::remove(path);
  (void)read_job(file.finished.document, "titan");  // a job that runs
  return file;
}

const std::string dense = "name = \"llama3\"\nflavor = \"8B\"", experts = "name = \"deepseek_v3\"\nflavor = \"16B\"";

TEST(TitanConverters, AreOfLinearModulesOrOfExperts) {
  const auto expect_precision = [](const ImportedFile& file, const char* compute, const char* of_experts, const char* recipe) {
    expect(file, {{"precision.compute", compute}, {"precision.experts", of_experts}, {"precision.recipe", recipe}});
  };
  expect_precision(titan(experts, "[\"quantize.grouped_mm.mx\"]"), "bf16", "fp8", "mxfp8");
  expect_precision(titan(experts, "\"quantize.grouped_mm.float8\""), "bf16", "fp8", "rowwise");
  expect_precision(titan(experts, "[\"quantize.linear.mx\"]"), "fp8", "bf16", "mxfp8");
  expect_precision(titan(experts, "[\"quantize.linear.mx\", \"quantize.grouped_mm.mx\"]"), "fp8", "", "mxfp8");
  expect_precision(titan(experts, "[\"float8\"]"), "fp8", "bf16", "tensorwise");
  expect_precision(titan(dense, "[\"mx\"]"), "fp8", "", "mxfp8");
}

TEST(TitanConverters, ConvertBothInAWord) {
  expect(titan(experts, "[\"float8\"]", "[float8]\nmoe_fqns_prototype = [\"experts\"]\n"),
         {{"precision", "{compute: fp8, recipe: tensorwise}"}});
  expect(titan(experts, "[\"float8\"]", "[float8]\nmoe_fqns_prototype = []\n"), {{"precision.experts", "bf16"}});
  expect(titan(experts, "[\"quantize.linear.float8\", \"quantize.grouped_mm.float8\"]"),
         {{"precision", "{compute: fp8, recipe: tensorwise}"}});
  const auto rows_of_experts = [](const std::string& recipe) {
    const ImportedFile both = titan(experts, "[\"quantize.linear.float8\", \"quantize.grouped_mm.float8\"]",
                                    "[quantize.linear.float8]\nrecipe_name = \"" + recipe + "\"\n");
    expect(both, {{"precision.recipe", recipe}});
    return says(both.draft.inferred, "precision.recipe: " + recipe + " of experts too");
  };
  EXPECT_TRUE(rows_of_experts("tensorwise"));
  EXPECT_TRUE(rows_of_experts("rowwise_with_gw_hp"));
  EXPECT_FALSE(rows_of_experts("rowwise")) << "as torchao has them";
  expect(titan(dense, "[\"quantize.linear.float8\"]"), {{"precision", "{compute: fp8, recipe: tensorwise}"}});
}

// torchtitan itself refuses a recipe beside gathers in 8 bits, of either table.
TEST(TitanConverters, HaveARecipeOrGatherByTensor) {
  for (const std::string& table : {std::string("float8"), std::string("quantize.linear.float8")}) {
    const auto file = [&](const std::string& rest) { return titan(dense, "[\"float8\"]", "[" + table + "]\n" + rest); };
    expect(file("recipe_name = \"rowwise\"\n"), {{"precision", "{compute: fp8, recipe: rowwise}"}});
    expect(file("recipe_name = \"rowwise_with_gw_hp\"\n"), {{"precision.recipe", "rowwise_with_gw_hp"}});
    expect(file("enable_fsdp_float8_all_gather = true\n"), {{"precision", "{compute: fp8, recipe: tensorwise, param_gather: fp8}"}});
    expect(file("recipe_name = \"rowwise\"\nenable_fsdp_float8_all_gather = false\n"), {{"precision.recipe", "rowwise"}});
    EXPECT_THROW(file("recipe_name = \"rowwise\"\nenable_fsdp_float8_all_gather = true\n"), config::InputError);
    EXPECT_THROW(file("recipe_name = \"columnwise\"\n"), config::InputError);
  }
  EXPECT_THROW(titan(dense, "[\"float8\"]",
                     "[float8]\nenable_fsdp_float8_all_gather = true\n[quantize.linear.float8]\nenable_fsdp_float8_all_gather = false\n"),
               config::InputError);
}

// Blocks and the loss are compiled apart; the stacks have the loss as it usually is, and the job the rest.
TEST(TitanCompiles, BlocksAndTheLossApart) {
  const auto stack = [](const std::string& model, const std::string& compile) { return titan(model, "[]", "[compile]\n" + compile); };
  const std::string all = "enable = true\n", blocks = all + "components = [\"model\"]\n", loss = all + "components = [\"loss\"]\n";
  expect(stack(dense, all), {{"software", "torchtitan"}});
  expect(stack(dense, ""), {{"software", "torchtitan-eager"}});
  expect(stack(experts, all), {{"software", "torchtitan-2025"}});
  expect(stack(experts, loss), {{"software", "torchtitan-2025-eager"}});
  for (const auto& [model, compile, compiled, name] : {std::tuple{dense, blocks, "false", "torchtitan (changed)"},
                                                       {dense, loss, "true", "torchtitan-eager (changed)"},
                                                       {experts, blocks, "false", "torchtitan-2025 (changed)"},
                                                       {experts, std::string(), "false", "torchtitan-2025-eager (changed)"}}) {
    expect(stack(model, compile), {{"software.name", name}, {"software.fusions.cross_entropy", compiled}});
  }
}

}  // namespace
}  // namespace rehearse::sim::testing
