// --window-attn-skip-freq of Megatron-Core: an n leaves out the last of every n layers, a list the layers of its zeros
// (megatron/core/transformer/utils.py, is_layer_window_attention).
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/import/import_file.hpp"

namespace rehearse::sim::testing {
namespace {

ImportedFile windowed(const std::string& arguments) {
  const std::filesystem::path path = std::filesystem::temp_directory_path() / ("windowed-" + std::to_string(::getpid()));
  std::ofstream(path)
      << "torchrun --nproc_per_node 8 --nnodes 1 pretrain_gpt.py --num-layers 4 --hidden-size 4096 --num-attention-heads 32 "
         "--seq-length 4096 --max-position-embeddings 4096 --vocab-size 50000 --micro-batch-size 1 --global-batch-size 64 "
         "--bf16 --window-size 127,0 "
      << arguments << '\n';
  ImportedFile file = import_file("megatron", path.string(), {{"cluster", "dgx-h100-ndr400"}});
  std::filesystem::remove(path);
  return file;
}

TEST(MegatronWindows, LeaveOutTheLastOfSoManyLayers) {
  expect(windowed(""), {{"model.window.tokens", "128"}, {"model.window.full_every", ""}});
  expect(windowed("--window-attn-skip-freq 4"), {{"model.window.tokens", "128"}, {"model.window.full_every", "4"}});
  expect(windowed("--window-attn-skip-freq [1]*3+[0]*1"), {{"model.window.tokens", "128"}, {"model.window.full_every", "4"}});
}

// Which are all of them where every single one is the last.
TEST(MegatronWindows, AreNotThereWhereEveryLayerIsLeftOut) {
  for (const char* every : {"1", "[0]*4"}) {
    const ImportedFile file = windowed(std::string("--window-attn-skip-freq ") + every);
    expect(file, {{"model.window", ""}});
    EXPECT_TRUE(says(file.draft.inferred, "all attend to the whole sequence")) << every;
  }
}

}  // namespace
}  // namespace rehearse::sim::testing
