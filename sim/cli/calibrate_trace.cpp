// rehearse calibrate trace: what profilers' traces say of a GPU, a stack and a network.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "sim/analytic/predict.hpp"
#include "sim/calibrate/class_times.hpp"
#include "sim/calibrate/operator_fit.hpp"
#include "sim/calibrate/trace_contention.hpp"
#include "sim/calibrate/trace_fit.hpp"
#include "sim/calibrate/trace_host.hpp"
#include "sim/calibrate/traced_collectives.hpp"
#include "sim/cli/calibrate.hpp"
#include "sim/cli/set_option.hpp"

namespace rehearse::cli {
namespace {

constexpr std::size_t most_worst = 5, most_operators = 10, longest_name = 70;
constexpr int least_launches = 30;  // whose median says something

std::string told_of_traces(const std::vector<sim::KinetoTrace>& traces) {
  std::string told;
  for (const sim::KinetoTrace& trace : traces) {
    told += fmt::format("{}: {}, rank {}, {} kernels in {:.3f} ms, {} steps marked\n", trace.path,
                        trace.device.empty() ? "GPU not named" : trace.device, trace.rank, trace.kernels.size(), trace.span_us / 1e3,
                        trace.steps);
  }
  sim::Table classes{{{"class", sim::Align::left}, {"kernels"}, {"time"}, {"share"}}};
  double all = 0;
  const std::vector<sim::ClassTime> times = sim::class_times(traces);
  for (const sim::ClassTime& time : times) all += time.busy_us;
  for (const sim::ClassTime& time : times) {
    classes.rows.push_back({std::string(sim::name_of(time.cls)), fmt::format("{}", time.kernels),
                            fmt::format("{:.3f} ms", time.busy_us / 1e3), fmt::format("{:.1f} %", 100 * time.busy_us / all)});
  }
  told += '\n' + rendered(classes);
  for (const sim::UnknownKernel& kernel : sim::unknown_kernels(traces))
    told += fmt::format("of no known class, {:.1f} %: {}\n", 100 * kernel.share, kernel.name.substr(0, 100));
  return told;
}

// Contention of the classes of communication that a GPU file knows: alpha over all computation, by its time, beta of the communication
// itself.
sim::Settings contention_settings(const std::vector<sim::MeasuredContention>& contentions) {
  struct Sum {
    double logs = 0, weight = 0, beta = 0;
  };
  std::map<std::string, Sum> sums;
  for (const sim::MeasuredContention& each : contentions) {
    if (each.with == "any") continue;
    Sum& sum = sums[each.with];
    if (each.cls == sim::KernelClass::communication) {
      sum.beta = each.factor;
    } else {
      sum.logs += each.time_us * std::log(each.factor);
      sum.weight += each.time_us;
    }
  }
  sim::Settings settings;
  for (const auto& [with, sum] : sums) {
    const std::string key = "cluster.gpu.contention." + with;
    if (sum.weight > 0) settings.emplace_back(key + ".alpha", fmt::format("{:.3f}", std::max(1.0, std::exp(sum.logs / sum.weight))));
    if (sum.beta > 0) settings.emplace_back(key + ".beta", fmt::format("{:.3f}", std::max(1.0, sum.beta)));
  }
  return settings;
}

std::string told_of_contention(const std::vector<sim::MeasuredContention>& contentions) {
  if (contentions.empty()) return "\nno kernel ran both alone and beside communication\n";
  sim::Table table{{{"beside communication", sim::Align::left}, {"of", sim::Align::left}, {"takes"}, {"alone"}, {"beside"}}};
  for (const sim::MeasuredContention& each : contentions) {
    table.rows.push_back({std::string(sim::name_of(each.cls)), each.with, fmt::format("{:.3f} times as long", each.factor),
                          fmt::format("{}", each.alone), fmt::format("{}", each.beside)});
  }
  std::string together;
  for (const auto& [key, value] : contention_settings(contentions)) together += fmt::format("{} {}\n", key, value);
  return '\n' + rendered(table) + together;
}

std::string told_of_host(const sim::HostTimes& host) {
  std::string told;
  if (host.launches > 0) told += fmt::format("\nhost: a launch takes {:.1f} us (median of {})", host.launch_us, host.launches);
  if (host.gaps > 0) {
    told += fmt::format(
        "; from one kernel to the next that was launched before, the GPU takes {:.1f} us (median of {}); it waits for the host {:.1f} % of "
        "the time",
        host.gap_us, host.gaps, 100 * host.waited_us / host.streams_us);
  }
  return told.empty() ? told : told + '\n';
}

// What launches and the gaps between kernels say of a GPU's and a stack's files.
sim::Settings host_settings(const sim::HostTimes& host) {
  sim::Settings settings;
  if (host.launches >= least_launches && host.launch_us > 0)
    settings.emplace_back("cluster.gpu.launch", fmt::format("{:.2f} us", host.launch_us));
  if (host.gaps >= least_launches) settings.emplace_back("software.launch", fmt::format("{:.2f} us", host.gap_us));
  return settings;
}

std::string time_of(double seconds) {
  return seconds < 1e-3 ? fmt::format("{:.1f} us", seconds * 1e6) : fmt::format("{:.3f} ms", seconds * 1e3);
}

double error_of(double predicted, double measured) { return 100 * (predicted / measured - 1); }

// Mean absolute errors of what is compared in one way, and the five that are farthest off afterwards.
std::string told_of_compared(const std::vector<sim::ComparedTime>& all) {
  std::string told = "\n";
  for (int way = 0; way < sim::ways_to_compare; ++way) {
    const auto by = static_cast<sim::ComparedBy>(way);
    int count = 0;
    double before = 0, after = 0;
    for (const sim::ComparedTime& each : all) {
      if (each.by != by) continue;
      ++count;
      before += std::abs(error_of(each.before_s, each.measured_s));
      after += std::abs(error_of(each.after_s, each.measured_s));
    }
    if (count > 0)
      told += fmt::format("{} {} compared: mean absolute error {:.2f} % before, {:.2f} % after\n", count, name_of(by), before / count,
                          after / count);
  }
  const auto distance = [](const sim::ComparedTime* each) { return std::abs(std::log(each->after_s / each->measured_s)); };
  std::map<std::string, const sim::ComparedTime*> by_name;  // what several ranks have is told once
  for (const sim::ComparedTime& each : all) {
    const sim::ComparedTime*& known = by_name[each.name];
    if (known == nullptr || distance(&each) > distance(known)) known = &each;
  }
  std::vector<const sim::ComparedTime*> worst;
  for (const auto& [name, each] : by_name) worst.push_back(each);
  std::ranges::stable_sort(worst, std::greater{}, distance);
  worst.resize(std::min(worst.size(), most_worst));
  sim::Table table{{{"farthest off", sim::Align::left}, {"traced"}, {"before"}, {"after"}}};
  for (const sim::ComparedTime* each : worst) {
    table.rows.push_back({each->name.substr(0, longest_name), time_of(each->measured_s),
                          fmt::format("{:+.1f} %", error_of(each->before_s, each->measured_s)),
                          fmt::format("{:+.1f} %", error_of(each->after_s, each->measured_s))});
  }
  return told + '\n' + rendered(table);
}

// Operators whose shapes the trace tells, those that take longest.
std::string told_of_operators(const std::vector<sim::TracedOperator>& operators) {
  if (operators.empty()) return "";
  sim::Table table{{{"operator", sim::Align::left}, {"calls"}, {"median"}, {"rate"}}};
  for (const sim::TracedOperator& each : operators) {
    if (table.rows.size() == most_operators) break;
    const bool moves = each.op.flops == 0;
    table.rows.push_back({each.shown.substr(0, longest_name), fmt::format("{}", each.calls), time_of(each.median_s),
                          moves ? fmt::format("{:.0f} GB/s", each.op.bytes / each.median_s * 1e-9)
                                : fmt::format("{:.0f} TFLOP/s", each.op.flops / each.median_s * 1e-12)});
  }
  const std::size_t more = operators.size() - table.rows.size();
  return '\n' + rendered(table) + (more > 0 ? fmt::format("and {} more whose shapes are in the trace\n", more) : "");
}

// A step as the trace has it, beside what the formula says of the job with what was fitted.
std::string told_of_step(const sim::KinetoTrace& trace, sim::JobRequest request, const sim::Settings& settings) {
  request.sets.insert(request.sets.end(), settings.begin(), settings.end());
  const sim::Job job = sim::load_job(request);
  const sim::StepResult predicted = sim::predict(job);
  // The formula knows the ranks of a stage by one of them.
  const int stage = workloads::rank_grid(job.workload).coordinates(trace.rank % job.system.gpus).pp;
  const auto rank = std::ranges::find(predicted.ranks, stage, &sim::RankResult::stage);
  if (rank == predicted.ranks.end()) return "";
  using enum sim::Phase;
  const sim::PhaseTimes& phases = rank->phases;
  const sim::GpuTimes measured = sim::gpu_times(trace);
  const double computing = phases[compute] + phases[recompute] + phases[optimizer];
  const double exchanging = phases[tp] + phases[cp] + phases[ep] + phases[pp] + phases[dp];
  sim::Table table{{{"a step of rank", sim::Align::left}, {"traced"}, {"with what was fitted"}}};
  table.columns.front().title += fmt::format(" {}", trace.rank);
  const auto add = [&](const char* what, double measured_us, double predicted_s) {
    table.rows.push_back({what, time_of(measured_us * 1e-6), time_of(predicted_s)});
  };
  add("computing", measured.computing_us, computing);
  add("communication, exposed", measured.exchanging_us, exchanging);
  add("copies, exposed", measured.copying_us, phases[offload]);
  add("idle", measured.idle_us, phases.total() - computing - exchanging - phases[offload]);
  add("all", measured.computing_us + measured.exchanging_us + measured.copying_us + measured.idle_us, phases.total());
  return '\n' + rendered(table);
}

std::string told_of_network(const sim::TracedCollectives& traced, const sim::NetworkCalibration& fit) {
  sim::Table table{{{"collective", sim::Align::left}, {"ranks"}, {"nodes"}, {"sizes"}, {"error before"}, {"after"}}};
  for (const sim::CollectiveError& each : fit.errors) {
    table.rows.push_back({each.collective, fmt::format("{}", each.ranks), fmt::format("{}", each.hosts), fmt::format("{}", each.rows),
                          fmt::format("{:.1f} %", each.before_pct), fmt::format("{:.1f} %", each.after_pct)});
  }
  return fmt::format(
      "\n{}\n{}{} calls of collectives{}\n", parameter_table(fit.parameters, fit.fitted), rendered(table), traced.calls,
      traced.of_one_rank ? "; groups of which one rank alone was traced give upper bounds: its kernels also wait for the others" : "");
}

[[noreturn]] void refuse_silent_network() {
  throw config::InputError("the traces have no collective whose size and ranks they tell", "PyTorch 2.4 and later trace them");
}

// By what was traced alone. beside: what hosts and contention say.
Exit without_job(const CalibrateOptions& options, const std::vector<sim::KinetoTrace>& traces, const sim::Settings& beside,
                 std::string told) {
  if (!options.sets.empty()) refuse_option(options.sets.front(), "--set", "trace without --job");
  if (!options.software.empty()) throw config::InputError("a file of a stack needs the job that was traced", "--job job.yaml");
  const std::vector<sim::TracedOperator> operators = sim::traced_operators(traces);
  const sim::TracedCollectives collectives = sim::traced_collectives(traces);
  told += told_of_operators(operators);
  if (options.from.empty()) {
    if (!options.gpu.empty() || !options.cluster.empty())
      throw config::InputError("a file needs a cluster to begin with, or the job that was traced",
                               "--from dgx-h100-ndr400, or --job job.yaml");
    return deliver(options, told, {});
  }
  const sim::FittedParts which = parts_of(options);
  std::vector<File> files;
  if (which.gpu && !operators.empty()) {
    sim::OperatorFit fit = sim::fit_to_operators(operators, options.from);
    told += '\n' + parameter_table(fit.parameters, fit.fitted) + told_of_compared(fit.compared);
    fit.settings.insert(fit.settings.end(), beside.begin(), beside.end());
    if (!options.gpu.empty()) files.push_back({options.gpu, sim::fitted_part(sim::gpu_part, fit.gpu, "cluster.gpu.", fit.settings)});
  } else if (!options.gpu.empty()) {
    throw config::InputError("the traces tell no shapes of operators that a GPU could be fitted to",
                             "torch.profiler with record_shapes=True, or --job");
  }
  if (which.cluster && !collectives.measured.empty()) {
    const sim::NetworkCalibration fit =
        sim::calibrate_to_collectives(collectives.measured, config::Node::scalar(options.from), config::Node::scalar(stack_of(options)));
    told += told_of_network(collectives, fit);
    if (!options.cluster.empty()) files.push_back({options.cluster, fit.cluster});
  } else if (!options.cluster.empty()) {
    refuse_silent_network();
  }
  return deliver(options, told, files);
}

// The cluster of a job, its GPU with it.
config::Node cluster_of(const sim::JobParts& parts) {
  config::Node cluster = sim::named(parts.cluster);
  cluster.set_child("gpu", sim::named(parts.gpu));
  return cluster;
}

}  // namespace

Exit calibrate_to_traces(const CalibrateOptions& options) {
  std::vector<sim::KinetoTrace> traces;
  for (const std::string& file : options.files) traces.push_back(sim::read_kineto(file));
  const std::vector<sim::MeasuredContention> contentions = sim::contentions(traces);
  const sim::HostTimes host = sim::host_times(traces);
  std::string told = told_of_traces(traces) + told_of_contention(contentions) + told_of_host(host);
  sim::Settings beside = contention_settings(contentions);
  for (auto& each : host_settings(host)) beside.push_back(std::move(each));
  if (options.job.empty()) return without_job(options, traces, beside, std::move(told));
  refuse_option(options.from, "--from", "trace with --job");
  refuse_option(options.stack, "--stack", "trace with --job, whose stack it is");
  sim::JobRequest request{.path = options.job, .sets = {}, .seed = {}};
  for (const std::string& set : options.sets) request.sets.push_back(parse_set(set));
  sim::FittedParts which = parts_of(options);
  which.cluster = false;
  const sim::TraceCalibration out = sim::calibrate_to_traces(traces, request, which);
  sim::Settings settings = out.settings;
  // A simulated trace is slowed down by its own file's factors, and launches as its own file says.
  if (!out.by_name()) settings.insert(settings.end(), beside.begin(), beside.end());
  told += '\n' + parameter_table(out.parameters, out.fitted) + told_of_compared(out.compared);
  CalibrateOptions others = options;
  others.cluster.clear();
  std::vector<File> files = files_of(others, out.parts, settings);
  if (!options.cluster.empty()) {
    const sim::TracedCollectives collectives = sim::traced_collectives(traces);
    if (collectives.measured.empty()) refuse_silent_network();
    const sim::NetworkCalibration fit =
        sim::calibrate_to_collectives(collectives.measured, cluster_of(out.parts), sim::named(out.parts.software));
    told += told_of_network(collectives, fit);
    files.push_back({options.cluster, fit.cluster});
    settings.insert(settings.end(), fit.settings.begin(), fit.settings.end());
  }
  told += told_of_step(traces.front(), request, settings);
  return deliver(options, told, files);
}

}  // namespace rehearse::cli
