// Reading platforms/gpus/*.yaml.
#include "sim/cost/gpu.hpp"

#include "sim/cost/cost_model.hpp"
#include "sim/cost/precision_names.hpp"

namespace rehearse::sim {
namespace {

using config::Dimension;

void read_peaks(Gpu& gpu, const config::Node& node) {
  node.allow_keys(precision_names());
  for (const std::string& key : node.keys()) {
    gpu.peak_flops_per_s[*precision_of(key)] = node.at(key).as_quantity(Dimension::compute_rate, 1e9);
  }
  if (gpu.peak_flops_per_s.empty()) node.fail_at_key("at least one precision is needed", "write for example peak: {bf16: 312 TFLOP/s}");
}

// >= 1: both sides can only be slowed down by sharing.
double stretch(const config::Node& node, const char* key) {
  const auto value = node.find(key);
  return value ? value->as_number(1, 100) : 1;
}

void read_contention(Gpu& gpu, const config::Node& node) {
  node.allow_keys({"tp", "cp", "ep", "pp", "dp", "offload"});
  for (const std::string& key : node.keys()) {
    const config::Node pair = node.at(key);
    pair.allow_keys({"alpha", "beta"});
    gpu.contention[key] = {stretch(pair, "alpha"), stretch(pair, "beta")};
  }
}

// flash: {1: {64: 0.57, 128: 0.44}}: generation, head dimension, share of the attention line.
void read_flash(Gpu& gpu, const config::Node& node) {
  node.allow_keys({"1", "2", "3"});
  for (const std::string& generation : node.keys()) {
    const config::Node by_head = node.at(generation);
    by_head.allow_keys({"32", "64", "96", "128", "192", "256"});
    auto& shares = gpu.flash_share[std::stoi(generation)];
    for (const std::string& head_dim : by_head.keys()) shares[std::stoi(head_dim)] = by_head.at(head_dim).as_number(1e-3, 1);
    if (shares.empty()) by_head.fail_at_key("a head dimension is missing", "write for example 2: {64: 0.7, 128: 0.65}");
  }
}

}  // namespace

Gpu read_gpu(const config::Node& node, const std::string& name) {
  node.allow_keys({"source", "memory", "memory_bandwidth", "power_limit", "launch", "peak", "contention", "efficiency", "flash"});
  Gpu gpu;
  gpu.name = name;
  static_cast<void>(node.at("source").as_string());
  gpu.memory_bytes = node.at("memory").as_quantity(Dimension::bytes, 1e6);
  gpu.memory_bytes_per_s = node.at("memory_bandwidth").as_quantity(Dimension::bandwidth, 1e6);
  gpu.power_limit_w = node.at("power_limit").as_quantity(Dimension::power, 1);
  gpu.launch_s = node.at("launch").as_quantity(Dimension::time);
  if (gpu.launch_s > 1) node.at("launch").fail("a launch above 1 s", "launches are microseconds: write 3 us");
  read_peaks(gpu, node.at("peak"));
  if (const auto contention = node.find("contention")) read_contention(gpu, *contention);
  if (const auto flash = node.find("flash")) read_flash(gpu, *flash);
  gpu.cost = read_efficiency(node.at("efficiency"), gpu);
  return gpu;
}

}  // namespace rehearse::sim
