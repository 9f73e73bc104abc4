// Reading platforms/software/*.yaml, and the price of an operator under a stack.
#include <algorithm>
#include <array>
#include <cmath>

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

constexpr int most_kernels = 10'000;

void read_kernels(const config::Node& experts, const char* key, workloads::PassKernels& kernels) {
  const auto node = experts.find(key);
  if (!node) return;
  node->allow_keys({"forward", "backward"});
  kernels.forward = static_cast<int>(node->at("forward").as_int(0, most_kernels));
  kernels.backward = static_cast<int>(node->at("backward").as_int(0, most_kernels));
}

void read_experts(const config::Node& node, Software& software) {
  node.allow_keys({"grouped_gemm", "low_precision_dispatch", "routing_kernels", "permutation_kernels", "pairing_kernels"});
  for (const Fusion& habit : expert_habits) {
    if (const auto value = node.find(habit.name)) software.fusions[habit.name] = value->as_bool();
  }
  read_kernels(node, "routing_kernels", software.routing_kernels);
  read_kernels(node, "permutation_kernels", software.permutation_kernels);
  read_kernels(node, "pairing_kernels", software.pairing_kernels);
}

// What the stack's generation of flash attention reaches of the GPU's attention line. A head takes the kernel of the next larger dimension.
double flash_share(const Gpu& gpu, const Software& software, const workloads::Operator& op) {
  const auto generation = gpu.flash_share.find(software.flash);
  if (op.cls != workloads::OperatorClass::attention || generation == gpu.flash_share.end()) return 1;
  const auto kernel = generation->second.lower_bound(static_cast<int>(op.head_dim));
  return kernel == generation->second.end() ? generation->second.rbegin()->second : kernel->second;
}

// Neither hides the other whole: the host gets ahead over long kernels and falls behind over short ones. 4 fits vTrain's runs on one node
// (7.1 % mean error; 7.3 % with 8, 7.5 % with the larger of both).
constexpr double queue_knee = 4;

double host_s(const Gpu& gpu, const Software& software) { return software.replays_graphs ? 0 : gpu.launch_s + software.issue_s; }

struct Share {
  double device_s = 0;
  int kernels = 0;
};

Share share_of(const Gpu& gpu, const Software& software, std::span<const workloads::Operator> operators) {
  Share share;
  for (const workloads::Operator& op : operators) {
    share.kernels += op.kernels;
    if (op.flops == 0 && op.bytes == 0) continue;  // work of the host alone
    share.device_s += gpu.cost->seconds(op) / flash_share(gpu, software, op) + software.launch_s * op.kernels;
  }
  return share;
}

std::vector<std::string> read_collectives(const config::Node& node) {
  std::vector<std::string> names;
  for (const config::Node& item : node.items()) {
    names.push_back(item.as_choice(workloads::CollectiveRegistry::names()));
    if (std::ranges::count(names, names.back()) > 1) item.fail("collective '" + names.back() + "' is listed twice");
  }
  if (std::ranges::find(names, "ring") == names.end()) node.fail("a communication library without 'ring'", "ring serves every group");
  return names;
}

}  // namespace

Software read_software(const config::Node& node, const std::string& name) {
  node.allow_keys(
      {"source", "fusions", "experts", "launch", "issue", "step", "collectives", "flash", "early_stop", "zero3_by_tensor", "memory"});
  Software software;
  software.name = name;
  static_cast<void>(node.at("source").as_string());
  software.fusions = read_fusions(node.at("fusions"));
  if (const auto experts = node.find("experts")) read_experts(*experts, software);
  software.launch_s = node.at("launch").as_quantity(Dimension::time);
  software.issue_s = node.at("issue").as_quantity(Dimension::time);
  software.step_s = node.at("step").as_quantity(Dimension::time);
  if (const auto collectives = node.find("collectives")) software.collectives = read_collectives(*collectives);
  if (const auto memory = node.find("memory")) software.memory = read_memory_overhead(*memory);
  if (const auto by_tensor = node.find("zero3_by_tensor")) software.zero3_by_tensor = by_tensor->as_bool();
  if (const auto stop = node.find("early_stop")) software.early_stop = stop->as_bool();
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
  fusions.routing_kernels = software.routing_kernels;
  fusions.permutation_kernels = software.permutation_kernels;
  fusions.pairing_kernels = software.pairing_kernels;
  return fusions;
}

double operator_seconds(const Gpu& gpu, const Software& software, const workloads::Operator& op) {
  const Share share = share_of(gpu, software, {&op, 1});
  return std::max(share.device_s, share.kernels * host_s(gpu, software));
}

double queued_seconds(const Gpu& gpu, const Software& software, std::span<const workloads::Operator> operators,
                      std::span<const workloads::Operator> queue, double others_s, int others) {
  const Share mine = share_of(gpu, software, operators), all = share_of(gpu, software, queue);
  const double host = (all.kernels + others) * host_s(gpu, software), device = all.device_s + others_s;
  const double wait = std::pow(std::pow(host, queue_knee) + std::pow(device, queue_knee), 1 / queue_knee) - device;
  return mine.device_s + (all.kernels > 0 ? wait * mine.kernels / all.kernels : 0);
}

}  // namespace rehearse::sim
