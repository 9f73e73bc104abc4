// Adam or Muon with gradient clipping on the parameters that this GPU updates.
#include <algorithm>
#include <cmath>

#include "workloads/operators/casts.hpp"

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

bool copies_buckets(const Workload& workload) { return workload.fusions.copies_buckets && workload.parallel.dp * workload.parallel.cp > 1; }

// In which clipping and update read gradients.
double gradient_bytes(const Workload& workload) {
  return bytes_of(copies_buckets(workload) ? workload.trained_weights() : workload.precision.gradients);
}

// Divided by the number of replicas, cast where their type is another than the weights', set to zero.
double bucket_bytes(const Workload& workload) {
  const double summed = bytes_of(workload.precision.gradients), own = bytes_of(workload.trained_weights());
  return 2 * summed + (summed != own ? summed + own : 0) + summed;
}

// Into which Megatron-Core cuts gradients that are reduced behind backward (megatron/core/distributed/distributed_data_parallel.py): at
// least 40 million parameters each, and a million for every rank of get_data_parallel_world_size() (now dp_group.size()), which leaves
// context parallelism out. A pipeline's stages but the first have one for each chunk, and so has whoever hides nothing.
double buckets_of(const Workload& workload, double gradients) {
  const Parallel& parallel = workload.parallel;
  if (!workload.overlap.dp_gradients || parallel.pp > 1) return parallel.vpp;
  return std::max(1.0, std::floor(gradients / std::max(40e6, 1e6 * parallel.dp)));
}

// The norm of each bucket; the host waits for each check of it, while the GPU has nothing to do.
void add_checks(const Workload& workload, double gradients, std::vector<Operator>& all) {
  const int buckets = static_cast<int>(buckets_of(workload, gradients));
  all.push_back(update_operator("gradients_checked", gradients * bytes_of(workload.precision.gradients), buckets));
  all.push_back(update_operator("checks_awaited", 0, buckets * workload.fusions.gradient_checks));
}

// Gradients checked and set to zero; weights of layers in 8 or 4 bits are cast.
std::vector<Operator> once_a_step(const Workload& workload, const HeldParameters& held) {
  std::vector<Operator> all;
  if (copies_buckets(workload) && held.gradients > 0) {
    constexpr int kernels = 3;
    all.push_back(update_operator("buckets_copied", held.gradients * bucket_bytes(workload), kernels));
  }
  if (workload.fusions.gradient_checks > 0 && held.gradients > 0) add_checks(workload, held.gradients, all);
  const bool zeroes = workload.fusions.zeroes_gradients && !copies_buckets(workload);  // which sets them to zero itself
  if (zeroes && held.gradients > 0) {
    all.push_back(update_operator("gradients_to_zero", held.gradients * bytes_of(workload.precision.gradients), 1));
  }
  const double own = weight_cast_bytes(workload, workload.precision.compute);
  const double more = weight_cast_bytes(workload, workload.precision.of_experts()) - own;
  const double bytes = workload.fusions.casts_weights ? held.layers * own + held.experts * more : 0;
  if (bytes > 0) {
    all.push_back(update_operator("weights_cast", bytes, 1));
    all.back().casts = true;
  }
  return all;
}

int unfused_launches(const Workload& workload, const HeldParameters& held) {
  const int by_tensor = workload.fusions.update_kernels;
  return by_tensor > 0 ? by_tensor * std::max(1, held.tensors) : foreach_kernels;
}

struct Matrices {
  std::int64_t rows, columns;
  double count;
};

// Of a layer's attention and its dense MLP or shared experts, and of its routed experts, as they lie on this GPU. Routers and norms are
// small beside them.
std::vector<Matrices> dense_matrices(const Workload& workload, const Shard& shard, LayerKind kind) {
  const Model& model = workload.model;
  std::vector<Matrices> all;
  if (model.mla && shard.heads > 0) {
    const MlaSpec& mla = *model.mla;
    const std::int64_t query = shard.heads * (mla.qk_nope + mla.qk_rope);
    if (mla.q_lora > 0) all.insert(all.end(), {{mla.q_lora, shard.hidden, 1}, {query, mla.q_lora, 1}});
    if (mla.q_lora == 0) all.push_back({query, shard.hidden, 1});
    all.insert(all.end(), {{mla.kv_lora + mla.qk_rope, shard.hidden, 1},
                           {shard.heads * (mla.qk_nope + mla.v), mla.kv_lora, 1},
                           {shard.hidden, shard.heads * mla.v, 1}});
  } else if (shard.heads > 0) {
    all.insert(all.end(), {{shard.query_width + 2 * shard.kv_width, shard.hidden, 1}, {shard.hidden, shard.query_width, 1}});
  }
  const std::int64_t ffn = kind == LayerKind::dense ? shard.ffn : std::int64_t{model.moe->shared} * model.moe->ffn / shard.tp;
  if (ffn > 0) all.insert(all.end(), {{ffn * (model.gated() ? 2 : 1), shard.hidden, 1}, {shard.hidden, ffn, 1}});
  if (kind == LayerKind::experts && model.narrows())
    all.insert(all.end(), {{model.moe->latent, shard.hidden, 1}, {shard.hidden, model.moe->latent, 1}});
  return all;
}

std::vector<Matrices> expert_matrices(const Workload& workload) {
  const MoeSpec& moe = *workload.model.moe;
  const double experts = static_cast<double>(moe.experts) / workload.parallel.ep;
  const std::int64_t ffn = std::max(1, moe.ffn / workload.parallel.etp);
  const std::int64_t width = workload.model.routed_width();
  return {{ffn * (workload.model.gated() ? 2 : 1), width, experts}, {width, ffn, experts}};
}

double parameters_in(const std::vector<Matrices>& all) {
  double sum = 0;
  for (const Matrices& some : all) sum += some.count * static_cast<double>(some.rows) * static_cast<double>(some.columns);
  return sum;
}

// Five steps over each matrix X of m rows, the shorter side: A = X X^T, B = b A + c A A, X = a X + B X.
void add_orthogonalisation(std::vector<Operator>& update, const std::vector<Matrices>& all, double parameters) {
  constexpr int steps = 5;
  const double share = parameters / parameters_in(all);
  for (const Matrices& some : all) {
    const std::int64_t m = std::min(some.rows, some.columns), n = std::max(some.rows, some.columns);
    const double times = steps * some.count * share;
    for (const auto& [columns, inner] : {std::pair(m, n), std::pair(m, m), std::pair(n, m)}) {
      Operator op;
      op.name = "newton_schulz";
      op.pass = Pass::update;
      op.m = m;
      op.n = columns;
      op.k = inner;
      op.flops = 2.0 * static_cast<double>(m) * static_cast<double>(columns) * static_cast<double>(inner);
      op.bytes = 2.0 * static_cast<double>(m * inner + inner * columns + m * columns);
      op.times = times;
      op.kernels = std::max(1, static_cast<int>(times));
      update.push_back(std::move(op));
    }
  }
}

// Of what this GPU updates of its stage's layers, told by its parameters: dense parts and experts apart, of the model's mix of layers.
void add_muon(const Workload& workload, const HeldParameters& held, std::vector<Operator>& update) {
  const Shard shard = shard_of(workload);
  std::vector<Matrices> dense;
  for (int layer = 0; layer < workload.model.layers; ++layer) {
    const LayerKind kind = shape_of(workload.model, layer).kind;
    for (Matrices& some : dense_matrices(workload, shard, kind)) {
      const auto same = std::ranges::find_if(dense, [&](const Matrices& x) { return x.rows == some.rows && x.columns == some.columns; });
      if (same == dense.end()) {
        dense.push_back(some);
      } else {
        same->count += some.count;
      }
    }
  }
  if (held.dense_updated > 0) add_orthogonalisation(update, dense, held.dense_updated);
  if (held.experts_updated > 0) add_orthogonalisation(update, expert_matrices(workload), held.experts_updated);
}

}  // namespace

OptimizerProgram optimizer_program(const Workload& workload, double parameters, const HeldParameters& held) {
  const double gradient = gradient_bytes(workload);
  const double state = bytes_of(workload.precision.optimizer), moment = bytes_of(workload.precision.moments);
  const auto states = [&](const Passes& passes) { return passes.master * state + passes.moments * moment; };
  // Weights that are kept in fewer bits than the master copy are written from it.
  const double kept = bytes_of(workload.trained_weights()), weight = kept < state ? kept : 0;
  std::vector<Operator> clipping = once_a_step(workload, held);
  clipping.push_back(update_operator("gradient_norm", parameters * gradient, 1));
  clipping.push_back(update_operator("gradient_clip", parameters * 2 * gradient, 1));
  if (workload.optimizer.on_cpu) {
    const double sent = workload.offload_weights ? 0 : parameters * kept;
    const double moved = parameters * (gradient + states(fused_passes) + weight);
    return {clipping, {parameters * gradient, moved / workload.optimizer.host_rate, sent}};
  }
  const bool fused = workload.fusions.optimizer;
  const double update = gradient + states(fused ? fused_passes : foreach_passes) + weight;
  OptimizerProgram program{clipping, {}};
  const double by_muon = workload.optimizer.muon() ? std::min(parameters, held.dense_updated + held.experts_updated) : 0;
  if (parameters > by_muon) {
    const int launches = fused ? 1 : unfused_launches(workload, held);
    program.update.push_back(by_operators(fused, update_operator("adam", (parameters - by_muon) * update, launches)));
  }
  if (by_muon > 0) {
    // The momentum in and out, the sum cast; then what became of it in, the master weight in and out, the weight out.
    const double narrow = bytes_of(DType::bf16);
    program.update.push_back(update_operator("momentum", by_muon * (gradient + 2 * moment + narrow), 1));
    add_muon(workload, held, program.update);
    program.update.push_back(update_operator("muon", by_muon * (narrow + 2 * state + weight), 1));
  }
  return program;
}

}  // namespace rehearse::workloads
