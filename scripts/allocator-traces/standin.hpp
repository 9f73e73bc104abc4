#pragma once

#include "cuda_runtime_api.h"

namespace standin {
// Everything that was launched on the stream so far is done.
void finish(cudaStream_t stream);
}  // namespace standin
