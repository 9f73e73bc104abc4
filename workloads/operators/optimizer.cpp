// Adam with gradient clipping on the parameters that this GPU updates.
#include "workloads/operators/section.hpp"

namespace rehearse::workloads {
namespace {

// Passes over master weights and moments. One kernel: master weight (2) and both moments (4) in and out. torch's foreach kernels: weight
// decay (2), first moment (3), second moment (2 + 3), root (2), bias correction (2), epsilon (2), update (4), of which five over the
// moments.
struct Passes {
  double master, moments;
};
constexpr Passes fused_passes{2, 4};
constexpr Passes foreach_passes{15, 5};
constexpr int foreach_kernels = 8;

Operator update_operator(const char* name, double bytes, int kernels) {
  Operator op = memory_bound(name, bytes, Pass::update, kernels);
  op.cls = OperatorClass::optimizer;
  return op;
}

// Gradients set to zero; weights of layers in 8 or 4 bits, read as they are kept and written for one product and transposed for the other.
std::vector<Operator> once_a_step(const Workload& workload, const HeldParameters& held) {
  std::vector<Operator> all;
  if (workload.fusions.zeroes_gradients && held.gradients > 0) {
    all.push_back(update_operator("gradients_to_zero", held.gradients * bytes_of(workload.precision.gradients), 1));
  }
  const DType narrow = workload.precision.compute;
  if (workload.fusions.casts_weights && held.layers > 0 && (narrow == DType::fp8 || narrow == DType::fp4)) {
    all.push_back(update_operator("weights_cast", held.layers * (bytes_of(workload.precision.weights) + 2 * bytes_of(narrow)), 1));
  }
  return all;
}

}  // namespace

OptimizerProgram optimizer_program(const Workload& workload, double parameters, const HeldParameters& held) {
  const double gradient = bytes_of(workload.precision.gradients);
  const double state = bytes_of(workload.precision.optimizer), moment = bytes_of(workload.precision.moments);
  const auto states = [&](const Passes& passes) { return passes.master * state + passes.moments * moment; };
  // Weights that are kept in fewer bits than the master copy are written from it.
  const double weight = bytes_of(workload.precision.weights) < state ? bytes_of(workload.precision.weights) : 0;
  std::vector<Operator> clipping = once_a_step(workload, held);
  clipping.push_back(update_operator("gradient_norm", parameters * gradient, 1));
  clipping.push_back(update_operator("gradient_clip", parameters * 2 * gradient, 1));
  if (workload.optimizer.on_cpu) {
    const double sent = parameters * bytes_of(workload.precision.weights);
    return {clipping, {parameters * gradient, parameters * (gradient + states(fused_passes) + weight), sent}};
  }
  const bool fused = workload.fusions.optimizer;
  const double update = gradient + states(fused ? fused_passes : foreach_passes) + weight;
  OptimizerProgram program{clipping, {}};
  program.update.push_back(update_operator("adam", parameters * update, fused ? 1 : foreach_kernels));
  return program;
}

}  // namespace rehearse::workloads
