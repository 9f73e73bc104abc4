#include "workloads/segments.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "workloads/schedule.hpp"

namespace rehearse::workloads {
namespace {

double weight_bytes(const Operator& product) {
  return bytes_of(product.dtype) * static_cast<double>(product.n) * static_cast<double>(product.k);
}

// A piece of a product: its rows are cut.
Operator piece_of(Operator product, int splits) {
  const double weights = weight_bytes(product);
  product.m = (product.m + splits - 1) / splits;
  product.flops /= splits;
  product.bytes = weights + std::max(0.0, product.bytes - weights) / splits;  // every piece reads the weights
  return product;
}

// What is left of a product beside a piece of it: rows before and rows behind, by a kernel each, of which the first and the last rank have
// one.
Operator rest_of(Operator product, const Operator& piece, int ranks) {
  product.m -= piece.m;
  product.flops -= piece.flops;
  product.bytes += weight_bytes(product) - piece.bytes;
  product.kernels *= ranks > 2 ? 2 : 1;
  return product;
}

// Tensor-parallel collectives next to a product, where tp overlap pipelines the two.
class Pairing {
 public:
  explicit Pairing(const Workload& workload)
      : on_(workload.overlap.tp), splits_(workload.overlap.tp_splits), own_(workload.fusions.own_tokens_first ? workload.parallel.tp : 0) {}

  // Two items as a segment, and what is left to do of the product behind it.
  struct Found {
    Segment segment;
    std::optional<Operator> rest = std::nullopt;
  };

  // The pair that starts at items[i], if there is one. A reduction that a weight gradient follows runs beside that, whole, and so does a
  // gather beside a product that does not need it.
  [[nodiscard]] std::optional<Found> at(const std::vector<Item>& items, std::size_t i) const {
    if (!on_ || i + 1 == items.size()) return std::nullopt;
    if (const auto* gather = collective(items[i], true)) {
      const auto* product = gemm(items[i + 1]);
      if (product != nullptr && gather->for_later) return Found{BesideSegment{*product, *gather}};
      if (product != nullptr) return own_ > 1 ? own_first(*product, *gather) : Found{pair(*product, *gather, true)};
    } else if (const auto* reduction = collective(items[i], false)) {
      if (const auto* product = weight_gradient(items, i + 1)) return Found{BesideSegment{*product, *reduction}};
    } else if (const auto* product = gemm(items[i]); product != nullptr && own_ == 0) {
      const auto* reduce = collective(items[i + 1], false);
      if (reduce != nullptr && weight_gradient(items, i + 2) == nullptr) return Found{pair(*product, *reduce, false)};
    }
    return std::nullopt;
  }

 private:
  static const Operator* gemm(const Item& item) {
    const auto* op = std::get_if<Operator>(&item);
    return op != nullptr && op->cls == OperatorClass::gemm ? op : nullptr;
  }
  static const Operator* weight_gradient(const std::vector<Item>& items, std::size_t i) {
    const Operator* product = i < items.size() ? gemm(items[i]) : nullptr;
    return product != nullptr && product->pass == Pass::backward_weight ? product : nullptr;
  }
  static const Communication* collective(const Item& item, bool gather) {
    const auto* what = std::get_if<Communication>(&item);
    if (what == nullptr || what->group != GroupKind::tp || what->in_line) return nullptr;
    return (what->kind == CollectiveKind::all_gather) == gather ? what : nullptr;
  }
  [[nodiscard]] Segment pair(const Operator& product, Communication collective, bool first) const {
    collective.bytes /= splits_;
    return SplitSegment{piece_of(product, splits_), std::move(collective), first, splits_};
  }
  // The rows that a rank has already, while it gathers the others.
  [[nodiscard]] Found own_first(const Operator& product, const Communication& gather) const {
    const Operator own = piece_of(product, own_);
    return {BesideSegment{own, gather}, rest_of(product, own, own_)};
  }
  bool on_;
  int splits_;
  int own_;  // ranks, of whose tokens a rank's own come first; 0: pieces
};

PassQueue::Pair queued_pair(const Segment& segment) {
  if (const auto* split = std::get_if<SplitSegment>(&segment))
    return {split->product, split->collective, split->splits, split->splits, split->splits - 1};
  const auto& beside = std::get<BesideSegment>(segment);
  return {beside.product, beside.collective};
}

// Attention beside transfers, where they overlap.
PassQueue::Pair queued_ring(const RingAttention& ring, const Workload& workload) {
  const int steps = workload.parallel.cp, sent = steps - 1;
  return {ring.step, ring.block(), steps, sent, workload.overlap.cp ? sent : 0};
}

std::shared_ptr<const PassQueue> queue_of(const std::vector<Item>& items, const Pairing& pairing, const Workload& workload) {
  auto queue = std::make_shared<PassQueue>();
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (const auto found = pairing.at(items, i)) {
      queue->pairs.push_back(queued_pair(found->segment));
      if (found->rest) queue->operators.push_back(*found->rest);
      ++i;
    } else if (const auto* op = std::get_if<Operator>(&items[i])) {
      queue->operators.push_back(*op);
    } else if (const auto* call = std::get_if<Communication>(&items[i])) {
      queue->issued_calls += call->captured ? 0 : 1;
      if (!workload.overlap.ep) queue->calls.push_back(*call);
    } else if (const auto* ring = std::get_if<RingAttention>(&items[i])) {
      queue->pairs.push_back(queued_ring(*ring, workload));
    }
  }
  return queue;
}

// Operators and collectives between experts, ring attentions and overlapped pairs, as the segments that they become.
class Run {
 public:
  Run(Cut cut, bool computations_first) : cut_(cut), computations_first_(computations_first) {}
  void add(const Operator& op) {
    if (!computations_first_) flush_calls();
    append(op);
  }
  void add(const Communication& what) { calls_.push_back(what); }
  std::vector<Segment> take() {
    flush_calls();
    return std::exchange(segments_, {});
  }

 private:
  static bool alike(const Communication& a, const Communication& b) { return a.kind == b.kind && a.group == b.group && a.bytes == b.bytes; }
  // Computations in a row are one operation: nothing can tell them apart.
  void append(const Operator& op) {
    ComputeSegment* last = segments_.empty() ? nullptr : std::get_if<ComputeSegment>(&segments_.back());
    if (cut_.granularity == Granularity::op) {
      segments_.emplace_back(ComputeSegment{.operators = {op}, .name = op.name, .behind_gather = op.behind_gather});
    } else if (last != nullptr && last->behind_gather == op.behind_gather) {
      last->operators.push_back(op);
    } else {
      segments_.emplace_back(ComputeSegment{.operators = {op}, .name = "", .behind_gather = op.behind_gather});
    }
  }
  // Those that follow all computations stand by kind.
  void flush_calls() {
    for (std::size_t i = 0; computations_first_ && i < calls_.size(); ++i) {
      std::stable_partition(calls_.begin() + static_cast<std::ptrdiff_t>(i), calls_.end(),
                            [first = calls_[i]](const Communication& call) { return alike(first, call); });
    }
    for (Communication& call : calls_) {
      CallSegment* last = segments_.empty() ? nullptr : std::get_if<CallSegment>(&segments_.back());
      if (cut_.merges_calls() && last != nullptr && alike(last->what, call)) {
        ++last->repeat;
      } else {
        segments_.emplace_back(CallSegment{std::move(call)});
      }
    }
    calls_.clear();
  }

  Cut cut_;
  bool computations_first_;
  std::vector<Segment> segments_;
  std::vector<Communication> calls_;
};

Pass pass_of(const Item& item) {
  return std::visit([](const auto& x) { return x.pass; }, item);
}

std::vector<Item> of_pass(const std::vector<Item>& items, bool weight) {
  std::vector<Item> chosen;
  for (const Item& item : items) {
    if (std::holds_alternative<RoutedExperts>(item)) {
      chosen.emplace_back(RoutedExperts{weight ? Pass::backward_weight : Pass::backward_input});
    } else if ((pass_of(item) == Pass::backward_weight) == weight) {
      chosen.push_back(item);
    }
  }
  return chosen;
}

}  // namespace

std::vector<Segment> Cutter::segments(const std::vector<Item>& items) const {
  const Pairing pairing(workload_);
  std::vector<Segment> all;
  Run run(cut_, cut_.merges_calls() || workload_.overlap.ep);
  const auto flush = [&] { std::ranges::move(run.take(), std::back_inserter(all)); };
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (auto found = pairing.at(items, i)) {
      flush();
      all.push_back(std::move(found->segment));
      if (found->rest) run.add(*found->rest);
      ++i;
    } else if (const auto* op = std::get_if<Operator>(&items[i])) {
      run.add(*op);
    } else if (const auto* call = std::get_if<Communication>(&items[i])) {
      run.add(*call);
    } else {
      flush();
      if (const auto* experts = std::get_if<RoutedExperts>(&items[i])) {
        all.emplace_back(ExpertSegment{*experts});
      } else {
        all.emplace_back(RingSegment{std::get<RingAttention>(items[i])});
      }
    }
  }
  flush();
  const auto queue = queue_of(items, pairing, workload_);
  for (Segment& segment : all) {
    if (auto* compute = std::get_if<ComputeSegment>(&segment)) compute->queue = queue;
  }
  return all;
}

UnitProgram Cutter::unit(const BlockProgram& block) const {
  UnitProgram program{segments(block.forward),
                      segments(block.recompute),
                      segments(block.backward),
                      {},
                      {},
                      block.parameters,
                      block.expert_parameters,
                      workload_.lora.on() ? block.parameters - block.adapters : 0};
  if (ScheduleRegistry::get(workload_.schedule).splits_backward()) {
    program.backward_input = segments(of_pass(block.backward, false));
    program.backward_weight = segments(of_pass(block.backward, true));
  }
  return program;
}

bool repeats_exactly(const std::vector<Segment>& segments, Cut cut) {
  return std::ranges::all_of(segments, [&](const Segment& segment) {
    return std::holds_alternative<ComputeSegment>(segment) || (cut.merges_calls() && std::holds_alternative<CallSegment>(segment));
  });
}

}  // namespace rehearse::workloads
