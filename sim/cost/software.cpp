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

std::map<std::string, bool> read_fusions(const config::Node& node) {
  std::vector<std::string> known;
  for (const Fusion& fusion : all_fusions) known.emplace_back(fusion.name);
  node.allow_keys(known);
  std::map<std::string, bool> fusions;
  for (const std::string& name : known) fusions[name] = node.at(name).as_bool();
  return fusions;
}

}  // namespace

Software read_software(const config::Node& node, const std::string& name) {
  node.allow_keys({"source", "fusions", "launch", "issue", "step"});
  Software software;
  software.name = name;
  static_cast<void>(node.at("source").as_string());
  software.fusions = read_fusions(node.at("fusions"));
  software.launch_s = node.at("launch").as_quantity(Dimension::time);
  software.issue_s = node.at("issue").as_quantity(Dimension::time);
  software.step_s = node.at("step").as_quantity(Dimension::time);
  return software;
}

KernelFusions kernel_fusions(const Software& software) {
  KernelFusions fusions;
  for (const Fusion& fusion : all_fusions) {
    if (const auto found = software.fusions.find(fusion.name); found != software.fusions.end()) fusions.*fusion.field = found->second;
  }
  return fusions;
}

double operator_seconds(const Gpu& gpu, const Software& software, const workloads::Operator& op) {
  const double device = gpu.cost->seconds(op) + software.launch_s * op.kernels;
  const double host = (gpu.launch_s + software.issue_s) * op.kernels;
  return std::max(device, host);
}

}  // namespace rehearse::sim
