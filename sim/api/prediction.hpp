// What is said of a step by formula, whoever asks: the command `predict`, the library, Python.
#pragma once

#include "sim/job/job.hpp"
#include "sim/report/report.hpp"

namespace rehearse::sim {

// The step, its memory as PyTorch's allocator keeps it, between what a measurement is expected, and what the training takes. Owns its
// sections. Throws config::InputError where a price (of a GPU for an hour; 0: none) is given and the job does not say how long it trains.
[[nodiscard]] Report prediction(const Job& job, double price_per_gpu_hour = 0);

}  // namespace rehearse::sim
