// How long a job takes to start for the first time that does not say (`training.init`).
#pragma once

namespace rehearse::sim {

// 60 s (gpus / 8)^0.34, on fewer than eight as on eight. Through half of the start-up times that MLPerf Training v3.0 to v5.1 logged
// (init_start to run_start, medians of runs) of GPT-3 175B, Llama 3.1 405B and 8B on 8 to 11,616 GPUs (tests/wholejob/data/start-up.csv;
// docs/whole-jobs.md).
[[nodiscard]] double start_up_s(int gpus);

}  // namespace rehearse::sim
