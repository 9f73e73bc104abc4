// How many modules of multi-token prediction Megatron-LM has behind layers of one block each: as many as the pattern says, whatever
// mtp-num-layers is; by the older argument as many as that says, and none without it (validate_args in megatron/training/arguments.py).
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/import/import_file.hpp"

namespace rehearse::sim::testing {
namespace {

ImportedFile with_modules(const std::string& arguments) {
  const std::filesystem::path path = std::filesystem::temp_directory_path() / ("modules-" + std::to_string(::getpid()));
  std::ofstream(path) << "torchrun pretrain_mamba.py --num-layers 4 --hidden-size 512 --num-attention-heads 8 --seq-length 1024 "
                         "--micro-batch-size 1 --global-batch-size 8 --vocab-size 32000 --position-embedding-type none --bf16 "
                      << arguments << '\n';
  ImportedFile file = import_file("megatron", path.string(), {{"cluster", "dgx-h100-ndr400"}, {"gpus", "8"}});
  std::filesystem::remove(path);
  return file;
}

TEST(ModulesBehindAPattern, AreCountedByIt) {
  const ImportedFile two = with_modules("--hybrid-layer-pattern M-M*/*-/*-");
  expect(two, {{"model.pattern", "M-M*"}, {"model.mtp", "2"}});
  EXPECT_FALSE(says(two.draft.inferred, "model.mtp"));
  const ImportedFile otherwise = with_modules("--hybrid-layer-pattern M-M*/*-/*- --mtp-num-layers 1");
  expect(otherwise, {{"model.mtp", "2"}});
  EXPECT_TRUE(says(otherwise.draft.inferred, "mtp-num-layers 1 is passed over"));
}

TEST(ModulesBehindAPattern, OfTheOlderArgumentAreCountedApart) {
  expect(with_modules("--hybrid-override-pattern M-M* --mtp-hybrid-override-pattern *- --mtp-num-layers 2"), {{"model.mtp", "2"}});
  expect(with_modules("--hybrid-override-pattern M-M* --mtp-hybrid-override-pattern *-"), {{"model.mtp", ""}});
}

}  // namespace
}  // namespace rehearse::sim::testing
