#include "workloads/operators/section.hpp"

#include <algorithm>
#include <ranges>

#include "workloads/stage_program.hpp"

namespace rehearse::workloads {
namespace {

void mark_recompute(Operator& op) { op.pass = Pass::recompute; }
void mark_recompute(Communication& communication) { communication.pass = Pass::recompute; }
void mark_recompute(RingAttention& ring) {
  ring.pass = Pass::recompute;
  ring.step.pass = Pass::recompute;
}

void mark_recompute(RoutedExperts& experts) { experts.pass = Pass::recompute; }

void mark_captured(Operator& op) { op.captured = true; }
void mark_captured(Communication& communication) { communication.captured = true; }
void mark_captured(RingAttention& ring) { ring.step.captured = true; }
void mark_captured(RoutedExperts& /*experts*/) {}  // in no graph

}  // namespace

Operator memory_bound(std::string name, double bytes, Pass pass, int kernels) {
  Operator op;
  op.name = std::move(name);
  op.cls = OperatorClass::memory_bound;
  op.pass = pass;
  op.bytes = bytes;
  op.kernels = kernels;
  return op;
}

Operator narrow_cast(std::string name, double bytes, Pass pass, int kernels) {
  Operator op = memory_bound(std::move(name), bytes, pass, kernels);
  op.casts = true;
  return op;
}

Operator by_operators(bool compiled, Operator kernel) {
  kernel.eager = !compiled;
  return kernel;
}

bool keeps_frozen(const Workload& workload, DType type) {
  return workload.lora.on() && is_narrow(type) && workload.precision.param_gather == type;
}

namespace {

// Of sums that lie sharded over so many ranks where every micro-batch is reduced.
double added_over(const Workload& workload, int ranks) {
  const Optimizer& optimizer = workload.optimizer;
  if (!workload.fusions.adopts_gradients || (optimizer.zero_stage >= 2 && !optimizer.copies && !optimizer.flat)) return 1;
  const double microbatches = std::max(1, workload.microbatches());
  return (microbatches - 1) / microbatches / (reduces_each_microbatch(workload) ? ranks : 1);
}

}  // namespace

double added_share(const Workload& workload) {
  return added_over(workload, shard_ranks(workload, workload.parallel.dp * workload.parallel.cp));
}

double added_share_of_experts(const Workload& workload) { return added_over(workload, workload.parallel.expert_replicas()); }

bool is_product_of(const Operator& op, const std::string& layer) {
  return (op.cls == OperatorClass::gemm && op.name == layer) || op.name == layer + weight_cast;
}

Operator frozen(std::string name) { return memory_bound(std::move(name), 0, Pass::backward_weight, 0); }

Section part_of(RecomputeModule module, Section section) {
  section.module = module;
  return section;
}

Section norm_of(const Workload& workload, Section section) {
  return workload.fusions.joined_norms ? section : part_of(RecomputeModule::layernorm, std::move(section));
}

Section makes(LayerOutput output, Section section) {
  section.output = output;
  return section;
}

namespace {

void issue_as_experts(std::vector<Item>& items) {
  for (Item& item : items) {
    if (auto* op = std::get_if<Operator>(&item)) op->of_experts = true;
  }
}

}  // namespace

Section of_experts(Section section) {
  issue_as_experts(section.forward);
  issue_as_experts(section.backward);
  return section;
}

BlockProgram of_experts(BlockProgram program) {
  issue_as_experts(program.forward);
  issue_as_experts(program.backward);
  return program;
}

Section within(GraphScope scope, const Workload& workload, Section section) {
  if (!workload.captures(scope)) return section;
  for (std::vector<Item>* items : {&section.forward, &section.backward}) {
    for (Item& item : *items) std::visit([](auto& content) { mark_captured(content); }, item);
  }
  return section;
}

Section pointwise(const std::string& name, const Traffic& traffic, OperatorClass cls) {
  Section section;
  const auto add = [&](std::vector<Item>& items, double bytes, double adds, Pass pass, int kernels) {
    if (bytes <= 0) return;
    Operator op = memory_bound(name, bytes, pass, kernels);
    op.cls = cls;
    op.adds = adds;
    op.eager = traffic.eager;
    items.emplace_back(std::move(op));
  };
  add(section.forward, traffic.forward_bytes, traffic.forward_adds, Pass::forward, traffic.forward_kernels);
  add(section.backward, traffic.backward_bytes, traffic.backward_adds, Pass::backward_input, traffic.backward_kernels);
  return section;
}

BlockProgram assemble(const std::vector<Section>& sections) {
  BlockProgram program;
  for (const Section& section : sections) {
    append(program.forward, section.forward);
    program.parameters += section.parameters;
    program.expert_parameters += section.expert_parameters;
    program.adapters += section.adapters;
  }
  for (auto section = sections.rbegin(); section != sections.rend(); ++section) append(program.backward, section->backward);
  return program;
}

std::vector<Item> as_recompute(std::vector<Item> items) {
  for (Item& item : items) std::visit([](auto& content) { mark_recompute(content); }, item);
  return items;
}

}  // namespace rehearse::workloads
