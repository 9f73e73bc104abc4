// How the tensors of a unit are written down, one step after another: their sizes on this GPU, and the collectives among them.
#pragma once

#include "sim/memory/unit_tensors.hpp"
#include "workloads/operators/shard.hpp"

namespace rehearse::sim {

// Tensors that the rank holds from their first use on.
enum Held {
  gathered_input,
  gathered_gradient,
  qkv_placeholder,
  projection_placeholder,
  fc1_placeholder,
  fc2_placeholder,
  query_down_placeholder,
  query_up_placeholder,
  pair_down_placeholder,
  pair_up_placeholder,
  experts_fc1_placeholder,
  experts_fc2_placeholder,
  shared_fc1_placeholder,
  shared_fc2_placeholder,
  latent_fc1_placeholder,
  latent_fc2_placeholder,
  scores_buffer,
  forward_workspace,
  backward_workspace,
  engine_workspace,
  grouped_workspace  // one for each of several streams
};

class TensorWriter {
 public:
  // Writes into `made`, which must outlive it; forward first.
  TensorWriter(const workloads::Workload& workload, UnitTensors& made)
      : w_(workload), s_(workloads::shard_of(workload)), made_(made), to_(&made.forward) {}

 protected:
  [[nodiscard]] double tokens() const { return static_cast<double>(s_.tokens); }
  [[nodiscard]] double wide(std::int64_t width) const { return tokens() * static_cast<double>(width) * s_.element; }
  [[nodiscard]] double full() const { return wide(s_.hidden); }
  [[nodiscard]] double states() const { return static_cast<double>(s_.spread_tokens * s_.hidden) * s_.element; }
  [[nodiscard]] double table() const { return matrix(s_.vocab); }
  [[nodiscard]] double matrix(std::int64_t width) const {
    return static_cast<double>(s_.hidden * width) * workloads::product_weight_bytes(w_);
  }
  [[nodiscard]] std::int64_t gated() const { return w_.model.gated() ? 2 * s_.ffn : s_.ffn; }
  [[nodiscard]] bool spreads() const { return s_.sp && s_.tp > 1; }
  [[nodiscard]] bool exchanges() const { return s_.cp > 1; }

  void start_backward() { to_ = &made_.backward; }
  void take_as(int tensor, double bytes) { to_->push_back({.kind = TensorStep::Kind::take, .tensor = tensor, .bytes = bytes}); }
  int take(double bytes) {
    take_as(made_.tensors, bytes);
    return made_.tensors++;
  }
  // Of every pair of token and expert that this rank's experts get.
  int take_pairs(double bytes) {
    to_->push_back({.kind = TensorStep::Kind::take, .tensor = made_.tensors, .per_pair = bytes});
    return made_.tensors++;
  }
  void give(int tensor) {
    if (tensor >= 0) to_->push_back({.kind = TensorStep::Kind::give, .tensor = tensor});
  }
  void wait_for_gpu() { to_->push_back({.kind = TensorStep::Kind::wait}); }
  // Input or output of a collective.
  int communicated(int tensor) { return marked(tensor, &TensorStep::communicated); }
  // Made in the stream of the communication that fills it.
  int aside(int tensor) { return marked(tensor, &TensorStep::aside); }
  void hold(Held what, double bytes) { to_->push_back({.kind = TensorStep::Kind::hold, .tensor = what, .bytes = bytes}); }
  void take_for_forward(double bytes) { to_->push_back({.kind = TensorStep::Kind::cached, .bytes = bytes}); }
  void make_gradient(double bytes) { to_->push_back({.kind = TensorStep::Kind::gradient, .bytes = bytes}); }
  void pass_on(int tensor, int name) { to_->push_back({.kind = TensorStep::Kind::pass_on, .tensor = tensor, .name = name}); }
  // Of cuBLAS, for the thread that makes the first product here.
  void hold_workspace(Held what) { hold(what, TensorStep::workspace); }
  // Of Transformer Engine's own calls of it (get_cublas_workspace in transformer_engine/pytorch/cpp_extensions/gemm.py), and of its grouped
  // products, of which four run at a time.
  void hold_engine_workspace() { hold(engine_workspace, TensorStep::engine_workspace); }
  void hold_grouped_workspaces() {
    constexpr int streams = 4;
    for (int i = 0; i < streams; ++i) hold(static_cast<Held>(grouped_workspace + i), TensorStep::engine_workspace);
  }
  // The tensor by another name: what a neighbour knows it by.
  void move_to(int name, int tensor) {
    for (TensorStep& step : *to_) {
      const bool own = step.kind == TensorStep::Kind::take || step.kind == TensorStep::Kind::give;
      if (own && step.tensor == tensor) step.tensor = name;
    }
  }

  int waited(int tensor) { return marked(communicated(tensor), &TensorStep::waited); }
  // All tokens under sequence parallelism, while a product needs them; beside another product.
  int gather() { return spreads() ? waited(take(full())) : -1; }
  int gather_beside() { return spreads() ? communicated(take(full())) : -1; }
  // A sum over tensor-parallel ranks, of which with sequence parallelism each keeps its tokens; beside another product.
  int spread(int tensor) {
    if (!spreads()) return s_.tp > 1 ? communicated(tensor) : tensor;
    const int part = waited(take(states()));
    give(waited(tensor));
    return part;
  }
  int spread_beside(int tensor) {
    if (!spreads()) return spread(tensor);
    const int part = communicated(take(states()));
    give(communicated(tensor));
    return part;
  }
  // What an all-to-all over the context-parallel group brings instead.
  int exchanged(int tensor, double bytes) {
    if (!exchanges()) return tensor;
    const int other = communicated(take(bytes));
    give(communicated(tensor));
    return other;
  }

  const workloads::Workload& w_;
  workloads::Shard s_;

 private:
  int marked(int tensor, bool TensorStep::*as) {
    for (TensorStep& step : *to_) {
      if (step.kind == TensorStep::Kind::take && step.tensor == tensor) step.*as = true;
    }
    return tensor;
  }

  UnitTensors& made_;
  std::vector<TensorStep>* to_;
};

}  // namespace rehearse::sim
