#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sim/serving/pool_keys.hpp"
#include "sim/serving/serving_report.hpp"

namespace rehearse::sim {
namespace {

using workloads::Arrivals;
using workloads::LengthLaw;
using workloads::LengthSpec;

std::string layout_of(const Pool& pool) {
  std::string text = fmt::format("{} {} x (tp {}", pool.instances, pool.name, pool.plan.tp);
  if (pool.plan.pp > 1) text += fmt::format(", pp {}", pool.plan.pp);
  if (pool.plan.dp > 1) text += fmt::format(", dp {}", pool.plan.dp);
  if (pool.plan.ep > 1) text += fmt::format(", ep {}", pool.plan.ep);
  if (pool.speculation.tokens > 0) text += fmt::format(", {} tokens tried", pool.speculation.tokens);
  text += fmt::format(", {}", name_of(pool.plan.precision.weights));
  if (pool.plan.precision.attention) text += fmt::format(", attention {}", name_of(*pool.plan.precision.attention));
  return text + fmt::format(") on {}", pool.software->name);
}

std::string arrivals_of(const workloads::ArrivalSpec& arrivals) {
  switch (arrivals.kind) {
    case Arrivals::poisson:
      return fmt::format("Poisson {:.4g}/s", arrivals.rate_per_s);
    case Arrivals::gamma:
      return fmt::format("gamma {:.4g}/s, cv {:.3g}", arrivals.rate_per_s, arrivals.variation);
    case Arrivals::constant:
      return fmt::format("{:.4g}/s, evenly", arrivals.rate_per_s);
    case Arrivals::closed:
      return fmt::format("{} clients in a closed loop", arrivals.clients);
    case Arrivals::trace:
      return "arrivals of a trace";
    default:
      return "all at once";
  }
}

std::string length_of(const LengthSpec& length) {
  switch (length.law) {
    case LengthLaw::uniform:
      return fmt::format("{}-{}", length.low, length.high);
    case LengthLaw::lognormal:
      return fmt::format("~{:.0f}", length.median);
    case LengthLaw::table:
      return "traced";
    default:
      return std::to_string(length.low);
  }
}

}  // namespace

std::vector<RecordedInstance> instances_of(const ServingReport& report) {
  std::vector<RecordedInstance> out;
  for (const PoolResult& pool : report.results.back().pools) {
    for (int i = 0; i < pool.instances; ++i) out.push_back({fmt::format("{}.{}", pool.name, i), pool.page_bytes});
  }
  return out;
}

JobSummary serving_summary(const ServingJob& job) {
  JobSummary summary;
  summary.name = job.name;
  summary.model = job.model.name;
  summary.cluster = job.cluster_name;
  std::vector<std::string> gpus, layouts;
  for (const ClusterPart& part : job.parts) gpus.push_back(part.gpu.name);
  for (const Pool& pool : job.pools) layouts.push_back(layout_of(pool));
  for (const ServiceFault& fault : job.faults) summary.faults.push_back(fault.text);
  summary.gpu = fmt::format("{}", fmt::join(gpus, " + "));
  summary.layout = fmt::format("{}", fmt::join(layouts, "; "));
  summary.batch = fmt::format("{} requests of {} + {} tokens, {}", job.load.requests, length_of(job.load.input), length_of(job.load.output),
                              arrivals_of(job.load.arrivals));
  summary.gpus = job.gpus();
  summary.gpu_memory_bytes = job.parts[job.pools.front().part].gpu.memory_bytes;
  summary.seed = job.seed;
  summary.input_hash = job.input_hash;
  summary.resolved_yaml = job.resolved_yaml;
  return summary;
}

}  // namespace rehearse::sim
