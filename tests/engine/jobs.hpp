// Small jobs as text, for tests that need a cluster and a model.
#pragma once

#include <fmt/format.h>

#include <ostream>
#include <string>

#include "sim/job/job.hpp"

namespace rehearse::tests {

// A GPU as the `gpu:` of a cluster: rooflines, no launch time.
inline std::string small_gpu(const std::string& contention) {
  return fmt::format(R"(
  gpu:
    source: test
    memory: 80 GiB
    memory_bandwidth: 2000 GB/s
    power_limit: 400 W
    launch: 0 us
    peak: {{bf16: 300 TFLOP/s, fp8: 600 TFLOP/s}}
    contention: {}
    efficiency:
      gemm: {{bf16: {{model: roofline, compute: 0.6, memory: 0.8}}, fp8: {{model: roofline, compute: 0.5, memory: 0.8}}}}
      attention: {{bf16: {{model: roofline, compute: 0.5, memory: 0.8}}, fp8: {{model: roofline, compute: 0.4, memory: 0.8}}}}
      memory_bound: {{model: roofline, memory: 0.8}})",
                     contention);
}

// Nodes of 8 behind one leaf switch, as the value of `cluster:`; `nics`: per node.
inline std::string small_cluster(int nics, const std::string& contention, const std::string& host_memory) {
  return fmt::format(R"({}
  gpus_per_node: 8
  intra_node: {{kind: nvswitch, bandwidth: 300 GB/s, efficiency: 0.8, latency: 3 us}}
  nics: {{per_node: {}, bandwidth: 200 Gbps, efficiency: 0.9, latency: 6 us}}
  network: {{kind: single_switch}}
  host: {{bandwidth: 20 GB/s, efficiency: 1, latency: 10 us}}
  host_memory: {})",
                     small_gpu(contention), nics, host_memory);
}

// A dense model on nodes of 8 with ample NICs, one leaf switch, no contention between computation and communication.
// `extra` are further lines of the job (YAML); `nics`: per node.
inline sim::Job small_job(int gpus, const std::string& parallel, const std::string& batch, const std::string& extra = "", int nics = 8,
                          int layers = 8) {
  const std::string text = fmt::format(R"(
model: {{layers: {}, hidden: 1024, heads: 16, kv_heads: 16, ffn: 4096, activation: gelu, vocab: 0, positions: rope}}
cluster:{}
gpus: {}
parallel: {}
batch: {}
precision: bf16
{}
)",
                                       layers, small_cluster(nics, "{tp: {alpha: 1, beta: 1}}", "{size: 2 TiB, bandwidth: 200 GB/s}"), gpus,
                                       parallel, batch, extra);
  return sim::read_job(config::Node::load_text(text, "small.yaml"), "small");
}

// One of several small jobs that a test runs through.
struct SmallJob {
  const char* name;
  int gpus;
  const char* parallel;
  const char* batch;
  const char* extra = "";
  int nics = 8;

  [[nodiscard]] sim::Job job() const { return small_job(gpus, parallel, batch, extra, nics); }
};

inline std::ostream& operator<<(std::ostream& out, const SmallJob& job) { return out << job.name; }

}  // namespace rehearse::tests
