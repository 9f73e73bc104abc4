// Final norm, logits, and their cross entropy: vocabulary-parallel as Megatron-LM's, or of logits that are gathered first.
#include <algorithm>
#include <iterator>

#include "workloads/operators/section.hpp"

namespace rehearse::workloads {
namespace {

constexpr double fp32_loss = 4;

// Bytes per logit. One kernel: logits in for the maximum, logits in and fp32 probabilities out; backward probabilities in, gradient out.
// Apart: to fp32 (e+4), maximum (4), difference (8), exponential (8), sum (4), division (8); backward difference and scale (16), cast
// (4+e).
Traffic loss_bytes(bool fused, double element) {
  if (fused) return {.forward_bytes = 2 * element + fp32_loss, .backward_bytes = fp32_loss + element, .forward_kernels = 2};
  return {.forward_bytes = element + 9 * fp32_loss, .backward_bytes = 5 * fp32_loss + element, .forward_kernels = 6, .backward_kernels = 3};
}

// torch.nn.functional.cross_entropy. Apart: to fp32 (e+4; not of fp32); log_softmax reads a row that is too long for its block's shared
// memory for the maximum, the sum and the result (4+4+4+4, cunn_SoftMaxForward in aten/src/ATen/native/cuda/SoftMax.cu); backward zeros
// for the gradient of one of them (4), which log_softmax reads for its sum and once more beside the result (4+4+4+4), cast (4+e).
// Compiled, or a kernel of its own: logits in for maximum and sum; backward logits in, gradient out.
Traffic torch_loss_bytes(bool fused, double element) {
  if (fused) return {.forward_bytes = 2 * element, .backward_bytes = 2 * element};
  const double cast = element < fp32_loss ? element + fp32_loss : 0;
  return {.forward_bytes = cast + 4 * fp32_loss,
          .backward_bytes = 5 * fp32_loss + cast,
          .forward_kernels = cast > 0 ? 3 : 2,
          .backward_kernels = cast > 0 ? 4 : 3};
}

// Maximum, predicted logit and sum of exponentials of every token, over the parts of the vocabulary.
void add_reductions(Section& section, const Shard& shard) {
  if (shard.head_tp == 1 || shard.gathers_logits()) return;
  for (const char* what : {"loss maximum", "loss predicted logit", "loss sum"}) {
    Communication communication;
    communication.name = std::string(what) + " " + std::string(name_of(communication.kind));
    communication.bytes = static_cast<double>(shard.tokens) * fp32_loss;
    section.forward.emplace_back(communication);
  }
}

// The parts of all ranks, joined; backward takes the rank's own part of the gradient (Megatron-LM's gather_output).
Section gathered_logits(const Shard& shard) {
  if (!shard.gathers_logits()) return {};
  const double own = static_cast<double>(shard.tokens * shard.vocab) * shard.element;
  Section section = pointwise("gathered_logits", {.forward_bytes = 2 * own * shard.tp, .backward_bytes = 2 * own}, OperatorClass::loss);
  Communication gather;
  gather.kind = CollectiveKind::all_gather;
  gather.name = "head logits " + std::string(name_of(gather.kind));
  gather.bytes = own * shard.tp;
  section.forward.emplace(section.forward.begin(), gather);
  return section;
}

Section cross_entropy(const Workload& workload, const Shard& shard) {
  const double logits = static_cast<double>(shard.tokens * shard.loss_vocab);
  const bool whole = shard.head_tp == 1 || shard.gathers_logits();
  const KernelFusions& fusions = workload.fusions;
  Traffic traffic = (fusions.log_softmax && whole ? torch_loss_bytes : loss_bytes)(fusions.cross_entropy, shard.element);
  traffic.eager = !fusions.cross_entropy;
  const PassCopies& copies = fusions.cross_entropy ? fusions.fused_loss_copies : fusions.loss_copies;
  traffic.forward_bytes += 2 * fp32_loss * copies.forward;
  traffic.backward_bytes += 2 * fp32_loss * copies.backward;
  traffic.forward_bytes *= logits;
  traffic.backward_bytes *= logits;
  traffic.forward_kernels *= workload.fusions.loss_pieces;
  traffic.backward_kernels *= workload.fusions.loss_pieces;
  Section section = pointwise("cross_entropy", traffic, OperatorClass::loss);
  add_reductions(section, shard);
  return section;
}

// Liger from 0.6.2 on, sums in 16 bits (ops/fused_linear_cross_entropy.py, grad_weight += torch.mm(...).float()): a part's gradient of the
// table, in 16 bits, is read and written in fp32, read as that and added to the sum in 16 bits, which is read and written: 14 bytes.
constexpr double widened_bytes = 14;

// A part of the tokens at a time: each reads the table again, and adds to its gradient.
void cut(Section& logits, const Workload& workload, const Shard& shard) {
  const int pieces = workload.fusions.loss_pieces;
  const bool widens = workload.fusions.widens_pieces;
  const double entries = static_cast<double>(shard.vocab * shard.hidden), table = entries * shard.element;
  const auto cut_products = [&](std::vector<Item>& items) {
    for (Item& item : items) {
      auto* op = std::get_if<Operator>(&item);
      if (op == nullptr || op->cls != OperatorClass::gemm) continue;
      const bool gradient = op->pass == Pass::backward_weight;
      op->bytes += (pieces - 1) * (gradient && !widens ? 2 : 1) * table;
      std::int64_t& tokens = gradient ? op->k : op->m;
      tokens = std::max<std::int64_t>(1, tokens / pieces);
      op->kernels *= pieces;
    }
  };
  cut_products(logits.forward);
  cut_products(logits.backward);
  if (!widens || workload.lora.on()) return;
  const Operator sum = memory_bound("table gradient sum", pieces * widened_bytes * entries, Pass::backward_weight, 2 * pieces);
  logits.backward.emplace_back(by_operators(false, sum));
}

// The logits once more, which the loss's backward reads. Their input is there, or gathered for the gradient of the table.
std::vector<Item> remade(const Section& logits, const Section& gathered) {
  std::vector<Item> again;
  for (const Item& item : logits.forward) {
    const auto* op = std::get_if<Operator>(&item);
    if (op != nullptr && op->cls == OperatorClass::gemm) again.push_back(item);
  }
  std::ranges::copy(gathered.forward, std::back_inserter(again));
  for (Item& item : again) std::visit([](auto& one) { one.pass = Pass::backward_input; }, item);
  return again;
}

}  // namespace

BlockProgram head_program(const Workload& workload) {
  if (workload.model.vocab == 0) return {};
  const Shard shard = shard_of(workload);
  Shard products = shard;
  products.tp = shard.head_tp;
  products.dense = workload.precision.head.value_or(shard.dense);
  Section logits = output_linear(workload, products, {"logits", shard.tokens, shard.vocab, shard.hidden, false}, "head");
  if (workload.lora.on()) logits.backward.emplace_back(frozen("logits"));
  cut(logits, workload, shard);
  // Tied weights are the embedding's; the last stage of a pipeline keeps a copy of them.
  if (workload.model.tied_embeddings && ends_meet(workload)) logits.parameters = 0;
  const Section gathered = gathered_logits(shard);
  BlockProgram program = assemble({norm(workload, shard, "final_norm"), logits, gathered, cross_entropy(workload, shard)});
  if (workload.fusions.remakes_logits) {
    const std::vector<Item> again = remade(logits, gathered);
    program.backward.insert(program.backward.begin(), again.begin(), again.end());
  }
  return program;
}

}  // namespace rehearse::workloads
