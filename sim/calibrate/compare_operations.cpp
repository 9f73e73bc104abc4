// Traces of `simulate`, whose kernels are named as the job's operations.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "sim/calibrate/alone.hpp"
#include "sim/calibrate/compared.hpp"

namespace rehearse::sim {
namespace {

struct Computing {
  const TraceKernel* kernel = nullptr;
  bool alone = true;
};

// By start.
std::vector<Computing> computing(const KinetoTrace& trace) {
  const std::vector<bool> alone = alone_on_gpu(trace);
  std::vector<Computing> out;
  for (std::size_t i = 0; i < trace.kernels.size(); ++i) {
    if (computes(trace.kernels[i])) out.push_back({&trace.kernels[i], alone[i]});
  }
  return out;
}

struct SeenWork {
  double seconds = 0;
  int count = 0;
  std::string label;  // of the first
};

void add_works(const PreparedStep& step, const KinetoTrace& trace, std::map<std::uint32_t, SeenWork>& works) {
  const std::vector<workloads::Op> ops = computations(step, trace);
  const std::vector<Computing> kernels = computing(trace);
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    const workloads::Op& op = ops.at(i % ops.size());
    const std::string& label = step.graph.labels[op.label];
    const TraceKernel& kernel = *kernels[i].kernel;
    if (kernel.name != label) {
      throw config::InputError(fmt::format("{}: kernel {} of its computation is {}, where the job has {}", config::shown(trace.path), i + 1,
                                           config::shown(kernel.name), config::shown(label)),
                               "the job and its granularity must be those that were traced");
    }
    if (!kernels[i].alone || kernel.end_us <= kernel.start_us) continue;
    SeenWork& seen = works[op.item];
    if (seen.label.empty()) seen.label = label;
    seen.seconds += (kernel.end_us - kernel.start_us) * 1e-6;
    ++seen.count;
  }
  if (kernels.size() % ops.size() != 0)
    throw config::InputError(
        fmt::format("{} is cut off: {} kernels, a step has {}", config::shown(trace.path), kernels.size(), ops.size()));
}

}  // namespace

bool named_as_operations(const PreparedStep& step, const std::vector<KinetoTrace>& traces) {
  const auto kernels = computing(traces.front());
  return !kernels.empty() && std::ranges::find(step.graph.labels, kernels.front().kernel->name) != step.graph.labels.end();
}

TracedComparison compare_operations(const PreparedStep& step, const std::vector<KinetoTrace>& traces) {
  std::map<std::uint32_t, SeenWork> seen;
  for (const KinetoTrace& trace : traces) add_works(step, trace, seen);
  if (seen.empty()) throw config::InputError("no kernel of the traces ran without communication beside it");
  TracedComparison out;
  std::vector<std::uint32_t> works;
  for (const auto& [work, each] : seen) {
    out.times.push_back({.name = each.label, .by = ComparedBy::name, .measured_s = each.seconds / each.count});
    works.push_back(work);
  }
  // The graph of operations is the same whatever they cost.
  out.predicted = [&step, works](const Job& job) {
    const Prices prices = price_graph(job.system, job.workload, step.model, step.graph);
    std::vector<double> seconds;
    for (const std::uint32_t work : works) seconds.push_back(prices.work_s.at(work));
    return seconds;
  };
  return out;
}

}  // namespace rehearse::sim
