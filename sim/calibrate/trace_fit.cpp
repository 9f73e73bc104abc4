#include "sim/calibrate/trace_fit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "sim/calibrate/kernel_class.hpp"
#include "sim/engine/prepared_step.hpp"

namespace rehearse::sim {
namespace {

using workloads::OperatorClass;
using workloads::OpKind;

constexpr double noise_of_operations = 0.002, noise_of_classes = 0.03;  // a simulator's trace repeats itself; kernels of one class differ

Job with(JobRequest request, const Settings& settings) {
  request.sets.insert(request.sets.end(), settings.begin(), settings.end());
  return load_job(request);
}

std::uint32_t simulated_rank(const PreparedStep& step, const KinetoTrace& trace) {
  for (std::uint32_t i = 0; i < step.graph.ranks.size(); ++i) {
    if (step.graph.ranks[i].rank == trace.rank) return i;
  }
  throw config::InputError(fmt::format("{} is of rank {}, which stands for none of the job's", config::shown(trace.path), trace.rank),
                           "--set simulation.ranks=all tells every rank apart");
}

// The rank's computations in the order of its stream, those that take time.
std::vector<workloads::Op> computations(const PreparedStep& step, std::uint32_t rank) {
  std::vector<workloads::Op> out;
  for (workloads::OpId id = 0; id < step.graph.size(); ++id) {
    const workloads::Op op = step.graph.op(id);
    if (op.rank == rank && op.kind == OpKind::compute && op.stream == workloads::Stream::compute && step.prices.compute_s(op) > 0)
      out.push_back(op);
  }
  return out;
}

struct Computing {
  const TraceKernel* kernel = nullptr;
  bool alone = true;  // no communication and no copy meanwhile
};

// By start.
std::vector<Computing> computing(const KinetoTrace& trace) {
  std::vector<Computing> out;
  std::vector<const TraceKernel*> others;
  for (const TraceKernel& kernel : trace.kernels) {
    if (kernel.copy || class_of(kernel) == KernelClass::communication) {
      others.push_back(&kernel);
    } else {
      out.push_back({&kernel});
    }
  }
  double busy_until_us = -1;  // of those communications that began before
  std::size_t next = 0;
  for (Computing& each : out) {
    for (; next < others.size() && others[next]->start_us < each.kernel->end_us; ++next) {
      busy_until_us = std::max(busy_until_us, others[next]->end_us);
    }
    each.alone = busy_until_us <= each.kernel->start_us;
  }
  return out;
}

bool named_as_operations(const PreparedStep& step, const std::vector<KinetoTrace>& traces) {
  const auto kernels = computing(traces.front());
  return !kernels.empty() && std::ranges::find(step.graph.labels, kernels.front().kernel->name) != step.graph.labels.end();
}

// Mean duration of every piece of work that was seen alone.
class Operations {
 public:
  Operations(const PreparedStep& step, const std::vector<KinetoTrace>& traces) {
    for (const KinetoTrace& trace : traces) add(step, trace);
    if (seconds_.empty()) throw config::InputError("no kernel of the traces ran without communication beside it");
  }
  [[nodiscard]] std::vector<double> measured() const {
    std::vector<double> logs;
    for (const auto& [work, sum] : seconds_) logs.push_back(std::log(sum.first / sum.second));
    return logs;
  }
  // The graph of operations is the same whatever they cost.
  [[nodiscard]] std::vector<double> predicted(const PreparedStep& step, const Job& job) const {
    const Prices prices = price_graph(job.system, job.workload, step.model, step.graph);
    std::vector<double> logs;
    for (const auto& [work, sum] : seconds_) logs.push_back(std::log(prices.work_s.at(work)));
    return logs;
  }

 private:
  void add(const PreparedStep& step, const KinetoTrace& trace) {
    const std::vector<workloads::Op> ops = computations(step, simulated_rank(step, trace));
    const std::vector<Computing> kernels = computing(trace);
    for (std::size_t i = 0; i < kernels.size(); ++i) {
      const workloads::Op& op = ops.at(i % ops.size());
      const std::string& label = step.graph.labels[op.label];
      const TraceKernel& kernel = *kernels[i].kernel;
      if (kernel.name != label) {
        throw config::InputError(fmt::format("{}: kernel {} of its computation is {}, where the job has {}", config::shown(trace.path),
                                             i + 1, config::shown(kernel.name), config::shown(label)),
                                 "the job and its granularity must be those that were traced");
      }
      if (!kernels[i].alone) continue;
      auto& [sum, count] = seconds_[op.item];
      sum += (kernel.end_us - kernel.start_us) * 1e-6;
      count += 1;
    }
    if (kernels.size() % ops.size() != 0)
      throw config::InputError(
          fmt::format("{} is cut off: {} kernels, a step has {}", config::shown(trace.path), kernels.size(), ops.size()));
  }
  std::map<std::uint32_t, std::pair<double, double>> seconds_;  // [work] sum, count
};

// A whole step of a rank by class of kernels.
class Classes {
 public:
  Classes(const PreparedStep& step, const std::vector<KinetoTrace>& traces) : rank_(simulated_rank(step, traces.front())) {
    const int steps = std::max(1, traces.front().steps);
    for (const ClassTime& time : class_times({traces.front()})) {
      if (const auto cls = class_in_model(time.cls)) seconds_[*cls] += time.busy_us * 1e-6 / steps;
    }
    const std::map<OperatorClass, double> said = said_by(step, step.job);
    std::erase_if(seconds_, [&](const auto& entry) { return !said.contains(entry.first); });
    if (seconds_.empty()) throw config::InputError("no class of the trace's kernels is among the job's");
  }
  [[nodiscard]] std::vector<double> measured() const {
    std::vector<double> logs;
    for (const auto& [cls, seconds] : seconds_) logs.push_back(std::log(seconds));
    return logs;
  }
  [[nodiscard]] std::vector<double> predicted(const PreparedStep& step, const Job& job) const {
    const std::map<OperatorClass, double> said = said_by(step, job);
    std::vector<double> logs;
    for (const auto& [cls, seconds] : seconds_) logs.push_back(std::log(said.at(cls)));
    return logs;
  }

 private:
  static std::optional<OperatorClass> class_in_model(KernelClass cls) {
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
  static OperatorClass joined(OperatorClass cls) {
    return cls == OperatorClass::gemm || cls == OperatorClass::attention ? cls : OperatorClass::memory_bound;
  }
  [[nodiscard]] std::map<OperatorClass, double> said_by(const PreparedStep& step, const Job& job) const {
    std::map<OperatorClass, double> seconds;
    for (const workloads::Op& op : computations(step, rank_)) {
      const workloads::Work& work = step.graph.works[op.item];
      for (const workloads::Operator& each : work.operators)
        seconds[joined(each.cls)] += work.repeat * operator_seconds(job.system.gpu, job.system.software, each);
    }
    return seconds;
  }
  std::uint32_t rank_;
  std::map<OperatorClass, double> seconds_;
};

double mean_error_pct(const std::vector<double>& predicted, const std::vector<double>& measured) {
  double sum = 0;
  for (std::size_t i = 0; i < measured.size(); ++i) sum += std::abs(std::expm1(predicted[i] - measured[i]));
  return 100 * sum / static_cast<double>(measured.size());
}

template <class Compared>
void fit(const Compared& compared, double noise, const PreparedStep& step, const JobRequest& request, const JobParameters& all,
         TraceCalibration& out) {
  const std::vector<double> measured = compared.measured();
  const auto predicted = [&](const Settings& settings) { return compared.predicted(step, with(request, settings)); };
  out.compared = static_cast<int>(measured.size());
  out.before_pct = mean_error_pct(predicted({}), measured);
  out.fitted =
      fit_parameters(all.parameters, measured, noise, [&](std::span<const double> values) { return predicted(settings_of(all, values)); });
  out.settings = settings_of_fitted(all, out.fitted);
  out.after_pct = mean_error_pct(predicted(out.settings), measured);
}

}  // namespace

TraceCalibration calibrate_to_traces(const std::vector<KinetoTrace>& traces, const JobRequest& request, const FittedParts& which) {
  const Job job = load_job(request);
  const workloads::Compiled compiled = compiled_for_simulation(job);
  const PreparedStep step(job, compiled);
  const JobParameters all = parameters_of(job, which);
  TraceCalibration out;
  out.parameters = all.parameters;
  out.parts = *job.parts;
  out.by_operation = named_as_operations(step, traces);
  if (out.by_operation) {
    fit(Operations(step, traces), noise_of_operations, step, request, all, out);
  } else {
    fit(Classes(step, traces), noise_of_classes, step, request, all, out);
  }
  return out;
}

}  // namespace rehearse::sim
