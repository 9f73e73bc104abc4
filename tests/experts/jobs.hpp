// Small jobs with experts, as text.
#pragma once

#include <fmt/format.h>

#include <string>

#include "sim/job/job.hpp"
#include "tests/engine/jobs.hpp"

namespace rehearse::tests {

// Nothing travels but tokens.
inline constexpr const char* tokens_alone =
    "software: {like: megatron-core, experts: {dispatch_kernels: deepep, gathers_counts: false, exchanges_weights: false}}\n";

// Layers of 16 experts, top 2, one shared expert, one dense layer first, on nodes of 8 with ample NICs and no contention between
// computation and communication unless `contention` says so. `extra` are further lines of the job.
inline sim::Job expert_job(int gpus, const std::string& parallel, const std::string& batch, const std::string& extra = "", int layers = 8,
                           const std::string& contention = "{alpha: 1, beta: 1}") {
  const std::string text =
      fmt::format(R"(
model: {{layers: {}, hidden: 2048, heads: 16, kv_heads: 16, ffn: 4096, activation: swiglu, vocab: 0, positions: rope,
         moe: {{experts: 16, top_k: 2, shared: 1, ffn: 2048, first_dense: 0}}}}
cluster:{}
gpus: {}
parallel: {}
batch: {}
precision: bf16
{}
)",
                  layers, small_cluster(8, "{ep: " + contention + "}", "{size: 2 TB, bandwidth: 400 GB/s}"), gpus, parallel, batch, extra);
  return sim::read_job(config::Node::load_text(text, "experts.yaml"), "experts");
}

}  // namespace rehearse::tests
