// Reading platforms/software/*.yaml, and the price of an operator under a stack.
#include <algorithm>
#include <array>

#include "sim/cost/gpu.hpp"

namespace rehearse::sim {
namespace {

using config::Dimension;
using workloads::KernelFusions;

struct Fusion {
  const char* name;
  bool KernelFusions::*field;
};
constexpr std::array<Fusion, 8> all_fusions{{{"softmax", &KernelFusions::softmax},
                                             {"norm", &KernelFusions::norm},
                                             {"activation", &KernelFusions::activation},
                                             {"dropout_add", &KernelFusions::dropout_add},
                                             {"rope", &KernelFusions::rope},
                                             {"cross_entropy", &KernelFusions::cross_entropy},
                                             {"gradient_accumulation", &KernelFusions::gradient_accumulation},
                                             {"optimizer", &KernelFusions::optimizer}}};

// What a stack does with experts; left out it is as KernelFusions has it.
constexpr std::array<Fusion, 2> expert_habits{
    {{"grouped_gemm", &KernelFusions::grouped_gemm}, {"low_precision_dispatch", &KernelFusions::low_precision_dispatch}}};

std::map<std::string, bool> read_fusions(const config::Node& node) {
  std::vector<std::string> known;
  for (const Fusion& fusion : all_fusions) known.emplace_back(fusion.name);
  node.allow_keys(known);
  std::map<std::string, bool> fusions;
  for (const std::string& name : known) fusions[name] = node.at(name).as_bool();
  return fusions;
}

void read_experts(const config::Node& node, std::map<std::string, bool>& fusions) {
  node.allow_keys({"grouped_gemm", "low_precision_dispatch"});
  for (const std::string& key : node.keys()) fusions[key] = node.at(key).as_bool();
}

// What the stack's generation of flash attention reaches of the GPU's attention line. A head takes the kernel of the next larger dimension.
double flash_share(const Gpu& gpu, const Software& software, const workloads::Operator& op) {
  const auto generation = gpu.flash_share.find(software.flash);
  if (op.cls != workloads::OperatorClass::attention || generation == gpu.flash_share.end()) return 1;
  const auto kernel = generation->second.lower_bound(static_cast<int>(op.head_dim));
  return kernel == generation->second.end() ? generation->second.rbegin()->second : kernel->second;
}

}  // namespace

Software read_software(const config::Node& node, const std::string& name) {
  node.allow_keys({"source", "fusions", "experts", "launch", "issue", "step", "flash", "memory"});
  Software software;
  software.name = name;
  static_cast<void>(node.at("source").as_string());
  software.fusions = read_fusions(node.at("fusions"));
  if (const auto experts = node.find("experts")) read_experts(*experts, software.fusions);
  software.launch_s = node.at("launch").as_quantity(Dimension::time);
  software.issue_s = node.at("issue").as_quantity(Dimension::time);
  software.step_s = node.at("step").as_quantity(Dimension::time);
  if (const auto memory = node.find("memory")) software.memory = read_memory_overhead(*memory);
  if (const auto flash = node.find("flash")) software.flash = static_cast<int>(flash->as_int(1, 3));
  return software;
}

KernelFusions kernel_fusions(const Software& software) {
  KernelFusions fusions;
  const auto take = [&](const Fusion& fusion) {
    if (const auto found = software.fusions.find(fusion.name); found != software.fusions.end()) fusions.*fusion.field = found->second;
  };
  std::ranges::for_each(all_fusions, take);
  std::ranges::for_each(expert_habits, take);
  return fusions;
}

double operator_seconds(const Gpu& gpu, const Software& software, const workloads::Operator& op) {
  const double device = gpu.cost->seconds(op) / flash_share(gpu, software, op) + software.launch_s * op.kernels;
  const double host = (gpu.launch_s + software.issue_s) * op.kernels;
  return std::max(device, host);
}

}  // namespace rehearse::sim
