// Low-rank adapters, as Megatron-Bridge's ParallelLinearAdapter (src/megatron/bridge/peft/utils.py, lora_layers.py), HuggingFace's PEFT
// (tuners/lora/layer.py) and torchtune (modules/peft/lora.py) run them: y + s (dropout(x) a) b, in 16 bits whatever the layer's own type,
// or in fp32 between casts, dropout alone or all of it.
#include "workloads/operators/adapters.hpp"

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <utility>

#include "workloads/operators/linear.hpp"

namespace rehearse::workloads {
namespace {

struct Matrix {
  LoraTarget target;
  std::int64_t columns;
};

std::vector<std::int64_t> adapters_beside(const Lora& lora, LoraTarget fused, bool apart, std::initializer_list<Matrix> matrices) {
  std::vector<std::int64_t> columns;
  const bool all = lora.adapts(fused);
  for (const Matrix& matrix : matrices) {
    if (all || lora.adapts(matrix.target)) columns.push_back(matrix.columns);
  }
  if (!all || apart || columns.empty()) return columns;
  std::int64_t sum = 0;
  for (const std::int64_t each : columns) sum += each;
  return {sum};
}

// What the adapters of one linear layer need to know. Over tp a column-parallel layer's adapter has its rank cut, a row-parallel one's
// has its input, and its output's columns.
struct AdapterShape {
  std::string name, where;
  Side side;
  std::int64_t rows, inputs, rank;     // tokens of the products, width of the input on this GPU, rank
  std::int64_t own_rank, out_columns;  // of a on this GPU; of b
  double output;                       // elements on this GPU that the result is added to
};

class Adapter {
 public:
  Adapter(const Workload& workload, const Shard& shard, const LinearKind& kind, AdapterShape shape)
      : workload_(workload), shard_(shard), kind_(kind), dropped_(adapter_input_element(workload, shard)), shape_(std::move(shape)) {}

  [[nodiscard]] double parameters() const {
    return static_cast<double>(shape_.inputs * shape_.own_rank + shape_.rank * shape_.out_columns);
  }

  void add_forward(std::vector<Item>& items) const {
    add_cast(items, Pass::forward, input(), shard_.element, dropped_);
    add_dropout(items, Pass::forward);
    add_cast(items, Pass::forward, input(), dropped_, kind_.element);
    items.emplace_back(low_rank(a(), Pass::forward, shape_.own_rank, shape_.inputs));
    add_low_rank(items, shape_.side == Side::column ? CollectiveKind::all_gather : CollectiveKind::all_reduce, Pass::forward);
    Operator last = low_rank(b(), Pass::forward, shape_.out_columns, shape_.rank);
    if (fused()) last.bytes += shape_.output * kind_.element;
    items.emplace_back(std::move(last));
    if (shape_.side == Side::row) add_hidden(items, CollectiveKind::all_gather, Pass::forward);
    if (!fused()) add_scaled_sum(items);
  }

  // passes: over the layer's input, that add what comes of it here to the layer's own gradient.
  void add_backward(std::vector<Item>& items, int passes) const {
    add_cast(items, Pass::backward_input, shape_.output, shard_.element, kind_.element);
    if (!fused()) add_kernel(items, " scale", 2 * shape_.output * kind_.element, Pass::backward_input);
    if (shape_.side == Side::row && shard_.sp) add_hidden(items, CollectiveKind::all_gather, Pass::backward_input);
    items.emplace_back(low_rank(b(), Pass::backward_input, shape_.rank, shape_.out_columns));
    add_low_rank(items, CollectiveKind::all_reduce, Pass::backward_input);
    add_own_gradient(items, b(), shape_.out_columns, shape_.rank);
    Operator gradient = low_rank(a(), Pass::backward_input, shape_.inputs, shape_.own_rank);
    if (fused()) gradient.bytes += input() * kind_.element;
    items.emplace_back(std::move(gradient));
    if (shape_.side == Side::column && !shard_.sp) add_hidden(items, CollectiveKind::all_reduce, Pass::backward_input);
    add_own_gradient(items, a(), shape_.own_rank, shape_.inputs);
    add_cast(items, Pass::backward_input, input(), kind_.element, dropped_);
    add_dropout(items, Pass::backward_input);
    add_cast(items, Pass::backward_input, input(), dropped_, shard_.element);
    if (fused()) return;
    add_kernel(items, " input gradient sum", passes * input() * shard_.element, Pass::backward_input);
  }

 private:
  [[nodiscard]] bool fused() const { return fuses_adapters(workload_, shard_); }
  [[nodiscard]] bool wide() const { return kind_.element > shard_.element; }
  [[nodiscard]] double input() const { return static_cast<double>(shape_.rows * shape_.inputs); }
  [[nodiscard]] Operator low_rank(const std::string& name, Pass pass, std::int64_t n, std::int64_t k) const {
    return product(name, pass, kind_.type, kind_.element, shape_.rows, n, k);
  }
  void add_kernel(std::vector<Item>& items, const char* what, double bytes, Pass pass, int kernels = 1) const {
    items.emplace_back(by_operators(kind_.compiled || fused(), memory_bound(shape_.name + what, bytes, pass, kernels)));
  }
  void add_own_gradient(std::vector<Item>& items, const std::string& name, std::int64_t n, std::int64_t k) const {
    add_weight_gradient(items, kind_, {name, shape_.rows, n, k});
  }
  void add_cast(std::vector<Item>& items, Pass pass, double elements, double from, double to) const {
    if (from != to) add_kernel(items, " cast", elements * (from + to), pass);
  }
  [[nodiscard]] std::string a() const { return shape_.name + "_a"; }
  [[nodiscard]] std::string b() const { return shape_.name + "_b"; }

  // In, out, and the mask out (backward: in).
  void add_dropout(std::vector<Item>& items, Pass pass) const {
    if (workload_.lora.dropout == 0) return;
    add_kernel(items, " dropout", input() * (2 * dropped_ + adapter_mask_bytes(workload_, shard_)), pass);
  }

  // Eager: the scale in and out, the sum two in and one out, in fp32 that cast; a compiler has all in one kernel.
  void add_scaled_sum(std::vector<Item>& items) const {
    const double own = kind_.element, layers = shard_.element;
    const double bytes = kind_.compiled ? own + 2 * layers : 2 * own + layers + own + own + (wide() ? own + layers : 0);
    const int eager = wide() ? 3 : 2;
    add_kernel(items, " scaled sum", shape_.output * bytes, Pass::forward, kind_.compiled ? 1 : eager);
  }

  // Over tp, of x a or its gradient.
  void add_low_rank(std::vector<Item>& items, CollectiveKind kind, Pass pass) const {
    if (shard_.tp == 1) return;
    Communication communication;
    communication.kind = kind;
    communication.name = shape_.where + " adapter " + std::string(name_of(kind));
    communication.bytes = static_cast<double>(shape_.rows * shape_.rank) * kind_.element;
    communication.pass = pass;
    communication.in_line = true;
    items.emplace_back(std::move(communication));
  }
  void add_hidden(std::vector<Item>& items, CollectiveKind kind, Pass pass) const {
    for (Item& item : hidden_collective(shard_, shape_.where + " adapter", kind, pass, kind_.element, 1)) {
      std::get<Communication>(item).in_line = true;
      items.push_back(std::move(item));
    }
  }

  const Workload& workload_;
  const Shard& shard_;
  const LinearKind& kind_;
  double dropped_;  // bytes of an element of what dropout reads and writes
  AdapterShape shape_;
};

AdapterShape shape_of(const Workload& workload, const Shard& shard, const Linear& linear, Side side, std::int64_t columns,
                      const std::string& where) {
  const std::int64_t rank = workload.lora.rank;
  const bool row = side == Side::row;
  return {.name = linear.name + "_lora",
          .where = where,
          .side = side,
          .rows = linear.m,
          .inputs = linear.k,
          .rank = rank,
          .own_rank = row ? rank : rank / shard.tp,
          .out_columns = row ? columns / shard.tp : columns,
          .output = static_cast<double>((row ? shard.spread_tokens : linear.m) * columns)};
}

}  // namespace

double adapter_input_element(const Workload& workload, const Shard& shard) {
  return workload.lora.weights ? std::max(bytes_of(*workload.lora.weights), shard.element) : shard.element;
}

double adapter_element(const Workload& workload, const Shard& shard) {
  const double kept = adapter_input_element(workload, shard);
  const std::optional<DType> gathered = workload.precision.param_gather;
  const bool narrowed = workload.optimizer.zero_stage == 3 && workload.optimizer.by_adapter && gathered;
  return narrowed ? std::min(kept, std::max(bytes_of(*gathered), shard.element)) : kept;
}

bool fuses_adapters(const Workload& workload, const Shard& shard) {
  return workload.fusions.fused_adapters && shard.tp == 1 && adapter_input_element(workload, shard) <= shard.element;
}

double normed_bytes(const Workload& workload, const Shard& shard) {
  return workload.lora.on() && unfused_norm_bytes(workload) > 0 ? 0 : shard.element;
}

// A byte by PyTorch's kernel, a bit by Transformer Engine's (common/dropout/dropout.cu).
double adapter_mask_bytes(const Workload& workload, const Shard& shard) { return fuses_adapters(workload, shard) ? 1.0 / 8 : 1; }

std::vector<std::int64_t> qkv_adapters(const Workload& workload, const Shard& shard) {
  return adapters_beside(
      workload.lora, LoraTarget::linear_qkv, workload.fusions.separate_qkv,
      {{LoraTarget::linear_q, shard.query_width}, {LoraTarget::linear_k, shard.kv_width}, {LoraTarget::linear_v, shard.kv_width}});
}

std::vector<std::int64_t> projection_adapters(const Workload& workload, const Shard& shard) {
  return adapters_beside(workload.lora, LoraTarget::linear_proj, false, {{LoraTarget::linear_proj, shard.hidden}});
}

std::vector<std::int64_t> fc1_adapters(const Workload& workload, const Shard& shard) {
  if (!workload.model.gated())
    return adapters_beside(workload.lora, LoraTarget::linear_fc1, false, {{LoraTarget::linear_fc1_up, shard.ffn}});
  return adapters_beside(workload.lora, LoraTarget::linear_fc1, workload.fusions.separate_gate,
                         {{LoraTarget::linear_fc1_gate, shard.ffn}, {LoraTarget::linear_fc1_up, shard.ffn}});
}

std::vector<std::int64_t> fc2_adapters(const Workload& workload, const Shard& shard) {
  return adapters_beside(workload.lora, LoraTarget::linear_fc2, false, {{LoraTarget::linear_fc2, shard.hidden}});
}

int adapter_tensors(const Workload& workload) {
  const Shard shard = shard_of(workload);
  const auto count = [&](const auto& adapters) { return 2 * static_cast<int>(adapters(workload, shard).size()); };
  return count(qkv_adapters) + count(projection_adapters) + count(fc1_adapters) + count(fc2_adapters);
}

void add_adapters(Section& section, const Workload& workload, const Shard& shard, const Linear& linear, Side side,
                  const std::string& where) {
  if (linear.adapters.empty()) return;
  const double element = adapter_element(workload, shard);
  // PyTorch multiplies fp32 in fp32 unless it is told to round (torch.backends.cuda.matmul.allow_tf32, false by default).
  LinearKind kind = kind_of(workload, shard, element > shard.element ? DType::fp32 : shard.dense);
  kind.element = kind.input = element;
  std::vector<std::vector<Item>> backward;
  int terms = linear.products;
  for (const std::int64_t columns : linear.adapters) {
    const Adapter adapter(workload, shard, kind, shape_of(workload, shard, linear, side, columns, where));
    adapter.add_forward(section.forward);
    adapter.add_backward(backward.emplace_back(), passes_of_sum(kind, terms + 1) - passes_of_sum(kind, terms));
    ++terms;
    section.adapters += adapter.parameters();
  }
  section.parameters += section.adapters;
  for (std::vector<Item>& items : backward)
    section.backward.insert(section.backward.begin(), std::make_move_iterator(items.begin()), std::make_move_iterator(items.end()));
}

}  // namespace rehearse::workloads
