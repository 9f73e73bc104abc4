#include "sim/calibrate/trace_fit.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "sim/calibrate/compared.hpp"

namespace rehearse::sim {
namespace {

using workloads::OpKind;

// A simulator's trace repeats itself; kernels of one class differ.
constexpr double noise_of_works = 0.002, noise_of_classes = 0.03;

Job with(JobRequest request, const Settings& settings) {
  request.sets.insert(request.sets.end(), settings.begin(), settings.end());
  return load_job(request);
}

std::vector<double> logs_of(std::vector<double> seconds) {
  for (double& each : seconds) each = std::log(each);
  return seconds;
}

}  // namespace

std::string_view name_of(ComparedBy by) {
  constexpr std::array<std::string_view, ways_to_compare> names{"operations", "operators by their shapes", "products by their places",
                                                                "classes of kernels"};
  return names[static_cast<std::size_t>(by)];
}

std::vector<workloads::Op> computations(const PreparedStep& step, const KinetoTrace& trace) {
  std::uint32_t rank = 0;
  while (rank < step.graph.ranks.size() && step.graph.ranks[rank].rank != trace.rank) ++rank;
  if (rank == step.graph.ranks.size())
    throw config::InputError(fmt::format("{} is of rank {}, which stands for none of the job's", config::shown(trace.path), trace.rank),
                             "--set simulation.ranks=all tells every rank apart");
  std::vector<workloads::Op> out;
  for (workloads::OpId id = 0; id < step.graph.size(); ++id) {
    const workloads::Op op = step.graph.op(id);
    if (op.rank == rank && op.kind == OpKind::compute && op.stream == workloads::Stream::compute && step.prices.compute_s(op) > 0)
      out.push_back(op);
  }
  return out;
}

TraceCalibration calibrate_to_traces(const std::vector<KinetoTrace>& traces, const JobRequest& request, const FittedParts& which) {
  const Job job = load_job(request);
  const workloads::Compiled compiled = compiled_for_simulation(job);
  const PreparedStep step(job, compiled);
  const JobParameters all = parameters_of(job, which);
  const bool by_name = named_as_operations(step, traces);
  const TracedComparison compared = by_name ? compare_operations(step, traces) : compare_kernels(step, traces);
  TraceCalibration out;
  out.parameters = all.parameters;
  out.parts = *job.parts;
  out.compared = compared.times;
  std::vector<double> measured;
  for (const ComparedTime& each : compared.times) measured.push_back(std::log(each.measured_s));
  const auto predicted = [&](const Settings& settings) { return compared.predicted(with(request, settings)); };
  out.fitted = fit_parameters(all.parameters, measured, by_name ? noise_of_works : noise_of_classes,
                              [&](std::span<const double> values) { return logs_of(predicted(settings_of(all, values))); });
  out.settings = settings_of_fitted(all, out.fitted);
  const std::vector<double> before = predicted({}), after = predicted(out.settings);
  for (std::size_t i = 0; i < measured.size(); ++i) {
    out.compared[i].before_s = before[i];
    out.compared[i].after_s = after[i];
  }
  return out;
}

}  // namespace rehearse::sim
