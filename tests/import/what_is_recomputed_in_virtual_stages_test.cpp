// Megatron-Core counts recomputed layers in each TransformerBlock, which is a virtual stage where there are some ("When using virtual
// pipelining, recompute_num_layers specifies the number of layers per virtual pipeline stage", NeMo's user guide, activation
// recomputation); full_layers counts them on a GPU.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/import/import_file.hpp"

namespace rehearse::sim::testing {
namespace {

// 32 layers in 4 stages of 8.
ImportedFile recomputed(const std::string& arguments) {
  const std::filesystem::path path = std::filesystem::temp_directory_path() / ("recomputed-" + std::to_string(::getpid()));
  std::ofstream(path)
      << "torchrun --nproc_per_node 8 --nnodes 2 pretrain_gpt.py --num-layers 32 --hidden-size 4096 --num-attention-heads 32 "
         "--seq-length 4096 --max-position-embeddings 4096 --vocab-size 50000 --micro-batch-size 1 --global-batch-size 64 "
         "--bf16 --pipeline-model-parallel-size 4 --tensor-model-parallel-size 2 --recompute-granularity full "
         "--recompute-method block "
      << arguments << '\n';
  ImportedFile file = import_file("megatron", path.string(), {{"cluster", "dgx-h100-ndr400"}});
  std::filesystem::remove(path);
  return file;
}

TEST(RecomputedLayers, AreCountedInEachVirtualStage) {
  expect(recomputed("--recompute-num-layers 3"), {{"recompute.full_layers", "3"}});
  expect(recomputed("--recompute-num-layers 1 --num-layers-per-virtual-pipeline-stage 2"), {{"recompute.full_layers", "4"}});
  const ImportedFile more = recomputed("--recompute-num-layers 3 --num-layers-per-virtual-pipeline-stage 2");
  expect(more, {{"recompute.full_layers", "8"}});
  EXPECT_TRUE(says(more.draft.inferred, "2 in each of a GPU's 4 virtual stages"));
}

// Each rank of tp keeps its part of the inputs, by the switch's two names.
TEST(RecomputedLayers, KeepAPartOfTheirInputs) {
  for (const char* name : {"--distribute-saved-activations", "--distribute-checkpointed-activations"}) {
    const ImportedFile file = recomputed(std::string("--recompute-num-layers 3 ") + name);
    expect(file, {{"recompute.full_layers", "3"}, {"recompute.shards_inputs", "true"}});
  }
}

}  // namespace
}  // namespace rehearse::sim::testing
