// Layers over stages where Megatron-LM's arguments do not split them evenly.
#pragma once

#include "sim/import/megatron_arguments.hpp"

namespace rehearse::sim {

struct SplitShape {
  std::int64_t layers = 0, pp = 1, vpp = 1;
};

// --decoder-first/last-pipeline-num-layers, --account-for-embedding/loss-in-pipeline-split, --pipeline-model-parallel-layout.
void read_megatron_split(MegatronArguments& arguments, const SplitShape& shape, Draft& draft);

}  // namespace rehearse::sim
