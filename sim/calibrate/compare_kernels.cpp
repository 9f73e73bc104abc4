// Traces of real runs: kernels find their place in the job by what the host called, by their order, or not at all.
#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <tuple>

#include "sim/calibrate/class_times.hpp"
#include "sim/calibrate/compared.hpp"
#include "sim/calibrate/traced_operators.hpp"

namespace rehearse::sim {
namespace {

using workloads::Operator;
using workloads::OperatorClass;

constexpr double most_uncovered = 0.5;  // of a class's time by operators with shapes: below that its sum says more

std::optional<OperatorClass> class_in_model(KernelClass cls) {
  switch (cls) {
    case KernelClass::product:
    case KernelClass::grouped_product:
      return OperatorClass::gemm;
    case KernelClass::attention:
      return OperatorClass::attention;
    case KernelClass::memory_bound:
      return OperatorClass::memory_bound;
    default:
      return {};
  }
}

OperatorClass joined(OperatorClass cls) {
  return cls == OperatorClass::gemm || cls == OperatorClass::attention ? cls : OperatorClass::memory_bound;
}

std::string_view name_of(OperatorClass cls) {
  if (cls == OperatorClass::gemm) return "products";
  return cls == OperatorClass::attention ? "attention" : "memory-bound";
}

// A step's operators on the GPU, in order. They keep no reference to the job.
std::vector<Operator> operators_of(const PreparedStep& step, const KinetoTrace& trace) {
  std::vector<Operator> out;
  for (const workloads::Op& op : computations(step, trace)) {
    const workloads::Work& work = step.graph.works[op.item];
    for (int i = 0; i < static_cast<int>(work.repeat); ++i) out.insert(out.end(), work.operators.begin(), work.operators.end());
  }
  return out;
}

// Products as they ran; what splits a product's sum over blocks and adds it up belongs to the product before.
std::vector<double> products_in_order(const KinetoTrace& trace) {
  std::vector<double> seconds;
  for (const TraceKernel& kernel : trace.kernels) {
    if (class_in_model(kernel.cls) != OperatorClass::gemm) continue;
    const double duration = (kernel.end_us - kernel.start_us) * 1e-6;
    if (duration <= 0) continue;
    if (!seconds.empty() && kernel.name.find("splitKreduce") != std::string::npos) {
      seconds.back() += duration;
    } else {
      seconds.push_back(duration);
    }
  }
  return seconds;
}

std::map<OperatorClass, double> class_seconds(const KinetoTrace& trace) {
  std::map<OperatorClass, double> seconds;
  for (const ClassTime& time : class_times({&trace, 1})) {
    if (const auto cls = class_in_model(time.cls); cls && time.busy_us > 0) seconds[*cls] += time.busy_us * 1e-6;
  }
  return seconds;
}

class Kernels {
 public:
  Kernels(const PreparedStep& step, const std::vector<KinetoTrace>& traces) : operators_(operators_of(step, traces.front())) {
    const KinetoTrace& trace = traces.front();
    std::map<OperatorClass, double> seconds = class_seconds(trace);
    by_shape(traces, seconds);
    if (seconds.contains(OperatorClass::gemm) && by_position(trace)) seconds.erase(OperatorClass::gemm);
    const std::set<OperatorClass> known = classes();
    for (const auto& [cls, sum] : seconds) {
      if (!known.contains(cls)) continue;
      sums_.push_back(cls);
      times_.push_back({.name = std::string(name_of(cls)), .by = ComparedBy::kind, .measured_s = sum / std::max(1, trace.steps)});
    }
    if (times_.empty()) throw config::InputError("no class of the trace's kernels is among the job's");
  }
  [[nodiscard]] const std::vector<ComparedTime>& times() const { return times_; }

  [[nodiscard]] std::vector<double> predicted(const Job& job) const {
    std::vector<double> seconds;
    for (const TracedOperator& each : shaped_) seconds.push_back(device_seconds(each, job.system.gpu, job.system.software));
    for (const Operator& each : ordered_) seconds.push_back(on_device(each, job));
    if (sums_.empty()) return seconds;
    std::map<OperatorClass, double> sums;
    for (const Operator& each : operators_) sums[joined(each.cls)] += on_device(each, job);
    for (const OperatorClass cls : sums_) seconds.push_back(sums.at(cls));
    return seconds;
  }

 private:
  static double on_device(const Operator& op, const Job& job) {
    TracedOperator alone;
    alone.op = op;
    return device_seconds(alone, job.system.gpu, job.system.software);
  }

  [[nodiscard]] std::set<OperatorClass> classes() const {
    std::set<OperatorClass> out;
    for (const Operator& each : operators_) out.insert(joined(each.cls));
    return out;
  }

  // Takes away the classes that are told by it.
  void by_shape(const std::vector<KinetoTrace>& traces, std::map<OperatorClass, double>& seconds) {
    const std::vector<TracedOperator> traced = traced_operators({&traces.front(), 1});
    std::map<OperatorClass, double> covered;
    for (const TracedOperator& each : traced) covered[each.op.cls] += each.calls * each.median_s;
    for (const TracedOperator& each : traced) {
      const auto all = seconds.find(each.op.cls);
      if (all == seconds.end() || covered.at(each.op.cls) < most_uncovered * all->second) continue;
      shaped_.push_back(each);
      times_.push_back({.name = each.shown, .by = ComparedBy::shape, .measured_s = each.median_s});
    }
    for (const TracedOperator& each : shaped_) seconds.erase(each.op.cls);
  }

  bool by_position(const KinetoTrace& trace) {
    std::vector<Operator> products;
    std::ranges::copy_if(operators_, std::back_inserter(products), [](const Operator& op) { return op.cls == OperatorClass::gemm; });
    const std::vector<double> measured = products_in_order(trace);
    if (products.empty() || measured.size() != products.size() * static_cast<std::size_t>(std::max(1, trace.steps))) return false;
    // Layers are alike: the same product at its first place stands for all.
    std::map<std::tuple<std::string, workloads::Pass, double>, std::vector<std::size_t>> places;
    for (std::size_t i = 0; i < products.size(); ++i) places[{products[i].name, products[i].pass, products[i].flops}].push_back(i);
    for (const auto& [key, at] : places) {
      double sum = 0;
      int count = 0;
      for (const std::size_t first : at) {
        for (std::size_t i = first; i < measured.size(); i += products.size()) {
          sum += measured[i];
          ++count;
        }
      }
      ordered_.push_back(products[at.front()]);
      times_.push_back({.name = std::get<0>(key), .by = ComparedBy::position, .measured_s = sum / count});
    }
    return true;
  }

  std::vector<Operator> operators_, ordered_;
  std::vector<TracedOperator> shaped_;
  std::vector<OperatorClass> sums_;
  std::vector<ComparedTime> times_;  // of shaped_, ordered_, sums_
};

}  // namespace

TracedComparison compare_kernels(const PreparedStep& step, const std::vector<KinetoTrace>& traces) {
  const auto kernels = std::make_shared<const Kernels>(step, traces);
  return {kernels->times(), [kernels](const Job& job) { return kernels->predicted(job); }};
}

}  // namespace rehearse::sim
