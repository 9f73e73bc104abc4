// Small jobs with experts, as text.
#pragma once

#include <fmt/format.h>

#include <string>

#include "sim/job/job.hpp"

namespace rehearse::tests {

// Layers of 16 experts, top 2, one shared expert, one dense layer first, on nodes of 8 with ample NICs and no contention between
// computation and communication unless `contention` says so. `extra` are further lines of the job.
inline sim::Job expert_job(int gpus, const std::string& parallel, const std::string& batch, const std::string& extra = "", int layers = 8,
                           const std::string& contention = "{alpha: 1, beta: 1}") {
  const std::string text = fmt::format(R"(
model: {{layers: {}, hidden: 2048, heads: 16, kv_heads: 16, ffn: 4096, activation: swiglu, vocab: 0, positions: rope,
         moe: {{experts: 16, top_k: 2, shared: 1, ffn: 2048, first_dense: 0}}}}
cluster:
  gpu:
    source: test
    memory: 80 GiB
    memory_bandwidth: 2000 GB/s
    power_limit: 400 W
    launch: 0 us
    peak: {{bf16: 300 TFLOP/s}}
    contention: {{ep: {}}}
    efficiency:
      gemm: {{bf16: {{model: roofline, compute: 0.6, memory: 0.8}}}}
      attention: {{bf16: {{model: roofline, compute: 0.5, memory: 0.8}}}}
      memory_bound: {{model: roofline, memory: 0.8}}
  gpus_per_node: 8
  intra_node: {{kind: nvswitch, bandwidth: 300 GB/s, efficiency: 0.8, latency: 3 us}}
  nics: {{per_node: 8, bandwidth: 200 Gbps, efficiency: 0.9, latency: 6 us}}
  network: {{kind: single_switch}}
  host: {{bandwidth: 20 GB/s, efficiency: 1, latency: 10 us}}
  host_memory: {{size: 2 TB, bandwidth: 400 GB/s}}
gpus: {}
parallel: {}
batch: {}
precision: bf16
{}
)",
                                       layers, contention, gpus, parallel, batch, extra);
  return sim::read_job(config::Node::load_text(text, "experts.yaml"), "experts");
}

}  // namespace rehearse::tests
