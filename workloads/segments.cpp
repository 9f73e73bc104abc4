#include "workloads/segments.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "workloads/schedule.hpp"

namespace rehearse::workloads {
namespace {

// A piece of a product: its rows are cut.
Operator piece_of(Operator product, int splits) {
  product.m = (product.m + splits - 1) / splits;
  const double weights = bytes_of(product.dtype) * static_cast<double>(product.n) * static_cast<double>(product.k);
  product.flops /= splits;
  product.bytes = weights + std::max(0.0, product.bytes - weights) / splits;  // every piece reads the weights
  return product;
}

// Tensor-parallel collectives next to a product, where tp overlap pipelines the two.
class Pairing {
 public:
  explicit Pairing(const Overlap& overlap) : on_(overlap.tp), splits_(overlap.tp_splits) {}

  // The pair that starts at items[i], if there is one. A reduction that a weight gradient follows runs beside that, whole, and so does a
  // gather beside a product that does not need it.
  [[nodiscard]] std::optional<Segment> at(const std::vector<Item>& items, std::size_t i) const {
    if (!on_ || i + 1 == items.size()) return std::nullopt;
    if (const auto* gather = collective(items[i], true)) {
      const auto* product = gemm(items[i + 1]);
      if (product != nullptr && gather->for_later) return BesideSegment{*product, *gather};
      if (product != nullptr) return pair(*product, *gather, true);
    } else if (const auto* reduction = collective(items[i], false)) {
      if (const auto* product = weight_gradient(items, i + 1)) return BesideSegment{*product, *reduction};
    } else if (const auto* product = gemm(items[i])) {
      const auto* reduce = collective(items[i + 1], false);
      if (reduce != nullptr && weight_gradient(items, i + 2) == nullptr) return pair(*product, *reduce, false);
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
  bool on_;
  int splits_;
};

// Operators and collectives that stand alone; overlapped pairs and rings are priced by themselves.
std::shared_ptr<const PassQueue> queue_of(const std::vector<Item>& items, const Pairing& pairing, bool hides_calls) {
  auto queue = std::make_shared<PassQueue>();
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (pairing.at(items, i)) {
      ++i;
    } else if (const auto* op = std::get_if<Operator>(&items[i])) {
      queue->operators.push_back(*op);
    } else if (const auto* call = std::get_if<Communication>(&items[i])) {
      queue->issued_calls += call->captured ? 0 : 1;
      if (!hides_calls) queue->calls.push_back(*call);
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
      segments_.emplace_back(ComputeSegment{{op}, op.name});
    } else if (last != nullptr) {
      last->operators.push_back(op);
    } else {
      segments_.emplace_back(ComputeSegment{{op}, ""});
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
  const Pairing pairing(workload_.overlap);
  std::vector<Segment> all;
  Run run(cut_, cut_.merges_calls() || workload_.overlap.ep);
  const auto flush = [&] { std::ranges::move(run.take(), std::back_inserter(all)); };
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (auto pair = pairing.at(items, i)) {
      flush();
      all.push_back(std::move(*pair));
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
  const auto queue = queue_of(items, pairing, workload_.overlap.ep);
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
