// LLaMA3-405B on device B of MoFa's Table 6 (arXiv 2511.09837), of which the first row sets four numbers (mofas_step_table_test.cpp).
#pragma once

namespace rehearse::tests {

inline constexpr const char* llama_405b_on_mofas_device = R"(
model: {layers: 126, hidden: 16384, heads: 128, kv_heads: 16, ffn: 53248, activation: swiglu, vocab: 128000}
cluster:
  gpu:
    source: calibrated on the first row
    memory: 64 GiB
    memory_bandwidth: 1600 GB/s
    power_limit: 400 W
    launch: 0 us
    peak: {bf16: 376 TFLOP/s}
    contention: {tp: {alpha: 1, beta: 1}}
    efficiency:
      gemm: {bf16: {model: roofline, compute: 0.9105, memory: 0.8}}
      attention: {bf16: {model: roofline, compute: 0.9105, memory: 0.8}}
      memory_bound: {model: roofline, memory: 1}
  gpus_per_node: 8
  intra_node: {kind: nvswitch, bandwidth: 196 GB/s, efficiency: 0.965, latency: 3.3 us}
  nics: {per_node: 1, bandwidth: 199.5 Gbps, efficiency: 1, latency: 6.6 us}
  network: {kind: single_switch}
  host: {bandwidth: 32 GB/s, efficiency: 1, latency: 10 us}
  host_memory: {size: 4 TB, bandwidth: 1530 GB/s}
)";

}  // namespace rehearse::tests
