#include <fmt/format.h>
#include <fmt/ranges.h>

#include <limits>

#include "sim/job/checks.hpp"
#include "sim/job/refusal.hpp"
#include "workloads/schedule.hpp"

namespace rehearse::sim {
namespace {

using config::Node;
using workloads::Workload;

constexpr int most_microbatches = 100'000;  // of one replica in one step; real jobs have at most a few hundred

void check_division(const Node& node, const Workload& workload) {
  const std::int64_t share = std::int64_t{workload.parallel.dp} * workload.batch.micro;
  if (workload.batch.global % share == 0) return;
  refuse(node, "batch.global",
         fmt::format("global ({}) is not a multiple of dp*micro = {}*{} = {}", workload.batch.global, workload.parallel.dp,
                     workload.batch.micro, share),
         fmt::format("global: {} would work", multiples_near(workload.batch.global, share)));
}

void check_size(const Node& node, const Workload& workload) {
  const std::int64_t tokens = std::int64_t{workload.batch.micro} * workload.batch.sequence;
  if (tokens > std::numeric_limits<int>::max()) {
    refuse(node, "batch.micro",
           fmt::format("micro*sequence = {} tokens, more than one micro-batch can have ({})", tokens, std::numeric_limits<int>::max()));
  }
  if (workload.microbatches() > most_microbatches) {
    refuse(node, "batch.global", fmt::format("{} micro-batches per replica, more than {}", workload.microbatches(), most_microbatches));
  }
}

void check_schedule(const Node& node, const Workload& workload) {
  const workloads::PipelineShape shape = workloads::pipeline_shape(workload);
  const std::string refusal = workloads::ScheduleRegistry::get(workload.schedule).refusal(shape);
  if (!refusal.empty()) refuse(node, node.find("schedule") || shape.chunks == 1 ? "schedule" : "parallel.vpp", refusal);
}

}  // namespace

void check_batch(const Node& node, const Workload& workload) {
  check_division(node, workload);
  check_size(node, workload);
  check_schedule(node, workload);
}

void check_precision(const Node& node, const Job& job) {
  const workloads::DType compute = job.workload.precision.compute;
  if (job.system.gpu.peak_flops_per_s.contains(compute)) return;
  std::vector<std::string_view> known;
  for (const auto& [type, peak] : job.system.gpu.peak_flops_per_s) known.push_back(workloads::name_of(type));
  const bool mapping = node.find("precision") && node.at("precision").is_map();
  refuse(node, mapping ? "precision.compute" : "precision",
         fmt::format("GPU '{}' does not compute in {}", job.system.gpu.name, workloads::name_of(compute)),
         fmt::format("it does in {}", fmt::join(known, ", ")));
}

void check_host(const Node& node, const Job& job) {
  const topology::HostMemorySpec& host = job.system.cluster.host_memory;
  const bool offloads = job.workload.offload_activations;
  if (!offloads && !job.workload.optimizer.on_cpu) return;
  const char* key = offloads ? "offload.activations" : "optimizer.device";
  if (host.bytes == 0) {
    refuse(node, key, fmt::format("cluster '{}' does not say how much memory the host of a node has", job.system.cluster.name),
           "add for example host_memory: {size: 2 TiB, bandwidth: 400 GB/s} to it");
  }
  if (job.workload.optimizer.on_cpu && host.bytes_per_s == 0) {
    refuse(node, "optimizer.device", fmt::format("cluster '{}' does not say how fast the host's memory is", job.system.cluster.name),
           "add for example bandwidth: 400 GB/s to its host_memory");
  }
}

}  // namespace rehearse::sim
