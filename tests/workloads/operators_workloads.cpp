#include "operators_workloads.hpp"

#include <stdexcept>

namespace rehearse::workloads::testing {

Workload gpt(int layers, int hidden, int heads, int vocab, int sequence, int micro) {
  Workload workload;
  Model& model = workload.model;
  model.name = "gpt";
  model.layers = layers;
  model.hidden = hidden;
  model.heads = model.kv_heads = heads;
  model.head_dim = hidden / heads;
  model.ffn = 4 * hidden;
  model.activation = Activation::gelu;
  model.dropout = 0.1;
  model.vocab = vocab;
  model.tied_embeddings = true;
  model.positions = Positions::learned;
  model.biases = true;
  model.norm = Norm::layernorm;
  workload.batch = {micro, micro, sequence};
  workload.precision.compute = DType::fp16;
  workload.attention = Attention::unfused;
  return workload;
}

Workload llama(int layers, int hidden, int heads, int kv_heads, int ffn, int vocab, int sequence, int micro) {
  Workload workload;
  Model& model = workload.model;
  model.name = "llama";
  model.layers = layers;
  model.hidden = hidden;
  model.heads = heads;
  model.kv_heads = kv_heads;
  model.head_dim = hidden / heads;
  model.ffn = ffn;
  model.activation = Activation::swiglu;
  model.vocab = vocab;
  workload.batch = {micro, micro, sequence};
  return workload;
}

std::vector<Operator> operators(const std::vector<Item>& items) {
  std::vector<Operator> found;
  for (const Item& item : items) {
    if (const auto* op = std::get_if<Operator>(&item)) found.push_back(*op);
  }
  return found;
}

double flops(const std::vector<Item>& items) { return flops_with_rings(items, 1); }

double flops(const std::vector<Item>& items, Pass pass) {
  double sum = 0;
  for (const Operator& op : operators(items)) sum += op.pass == pass ? op.flops : 0;
  return sum;
}

double flops_with_rings(const std::vector<Item>& items, int cp) {
  double sum = 0;
  for (const Operator& op : operators(items)) sum += op.flops;
  for (const Item& item : items) {
    if (const auto* ring = std::get_if<RingAttention>(&item)) sum += cp * ring->step.flops;
  }
  return sum;
}

double bytes(const std::vector<Item>& items) {
  double sum = 0;
  for (const Operator& op : operators(items)) sum += op.bytes;
  return sum;
}

std::vector<Communication> communications(const std::vector<Item>& items) {
  std::vector<Communication> found;
  for (const Item& item : items) {
    if (const auto* communication = std::get_if<Communication>(&item)) found.push_back(*communication);
  }
  return found;
}

Operator find(const std::vector<Item>& items, const std::string& name) {
  for (const Operator& op : operators(items)) {
    if (op.name == name) return op;
  }
  throw std::runtime_error("no operator " + name);
}

std::vector<std::string> skeleton(const std::vector<Item>& items) {
  std::vector<std::string> names;
  for (const Item& item : items) {
    if (const auto* communication = std::get_if<Communication>(&item)) names.push_back(communication->name);
    if (const auto* op = std::get_if<Operator>(&item); op != nullptr && op->cls != OperatorClass::memory_bound) {
      names.push_back(op->name + (op->pass == Pass::backward_weight ? " (weights)" : ""));
    }
  }
  return names;
}

Workload parallel(int tp, bool sp, int cp) {
  Workload workload = llama(32, 4096, 32, 8, 14336, 128256, 8192, 2);
  workload.parallel.tp = tp;
  workload.parallel.sp = sp;
  workload.parallel.cp = cp;
  return workload;
}

}  // namespace rehearse::workloads::testing
