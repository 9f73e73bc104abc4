// Programs on top of Megatron name the activation function (--activation-func) and say apart from it whether it has a gate.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <utility>

#include "tests/import/import_file.hpp"

namespace rehearse::sim::testing {
namespace {

ImportedFile with_activation(const std::string& arguments) {
  const std::filesystem::path path = std::filesystem::temp_directory_path() / ("activation-" + std::to_string(::getpid()));
  std::ofstream(path)
      << "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 8 --hidden-size 512 --num-attention-heads 8 --seq-length 1024 "
         "--micro-batch-size 1 --global-batch-size 8 --vocab-size 32000 --bf16 "
      << arguments << '\n';
  ImportedFile file = import_file("megatron", path.string(), {{"cluster", "dgx-h100-ndr400"}});
  std::filesystem::remove(path);
  return file;
}

// relu alone moves what gelu does; squared it is another function.
TEST(NamedActivation, IsWhatItsNameAndItsGateSay) {
  for (const auto& [arguments, activation] : {std::pair{"--activation-func silu --gated-linear-unit", "swiglu"},
                                              {"--activation-func gelu --gated-linear-unit", "geglu"},
                                              {"--activation-func gelu", "gelu"},
                                              {"--activation-func relu", "gelu"},
                                              {"--activation-func squared_relu", "relu2"},
                                              {"--squared-relu", "relu2"}})
    expect(with_activation(arguments), {{"model.activation", activation}});
}

}  // namespace
}  // namespace rehearse::sim::testing
