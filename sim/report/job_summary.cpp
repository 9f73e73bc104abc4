#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "sim/report/reporter.hpp"
#include "workloads/names.hpp"

namespace rehearse::sim {
namespace {

std::vector<std::string> degrees_of(const workloads::Parallel& parallel, bool experts) {
  const std::pair<std::string_view, int> degrees[] = {{"tp", parallel.tp}, {"cp", parallel.cp}, {"pp", parallel.pp},  {"vpp", parallel.vpp},
                                                      {"dp", parallel.dp}, {"ep", parallel.ep}, {"etp", parallel.etp}};
  std::vector<std::string> parts;
  for (const auto& [name, degree] : degrees) {
    const bool about_experts = name == "ep" || name == "etp", unlike_tp = name == "etp" && degree != parallel.tp;
    if ((degree > 1 || unlike_tp) && (experts || !about_experts)) parts.push_back(fmt::format("{} {}", name, degree));
  }
  return parts;
}

std::string layout_of(const workloads::Workload& workload) {
  std::vector<std::string> parts = degrees_of(workload.parallel, workload.model.moe.has_value());
  if (workload.parallel.sp) parts.emplace_back("sp");
  if (workload.parallel.pp > 1) parts.push_back(workload.schedule);
  if (workload.recompute.kind == workloads::RecomputeKind::selective) {
    std::vector<std::string_view> modules;
    for (const auto module : workload.recompute.modules) modules.push_back(workloads::recompute_modules.of(module));
    parts.push_back(modules.empty() ? "selective recompute" : fmt::format("recompute of {}", fmt::join(modules, " ")));
  }
  if (workload.recompute.kind == workloads::RecomputeKind::full) {
    const int layers = workload.recompute.full_layers;
    std::string text = layers < 0 ? "full recompute" : fmt::format("full recompute of {} layers per GPU", layers);
    for (const auto output : workload.recompute.kept)
      text += fmt::format("{}{}", output == workload.recompute.kept.front() ? " but " : " ", workloads::layer_outputs.of(output));
    if (workload.recompute.shards_inputs) text += " of sharded inputs";
    parts.push_back(std::move(text));
  }
  if (workload.lora.on()) parts.push_back(fmt::format("lora {}", workload.lora.rank));
  if (workload.optimizer.zero_stage > 0)
    parts.push_back(fmt::format("zero{}{}", workload.optimizer.zero_stage, workload.optimizer.no_sync ? " without sync" : ""));
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string batch_of(const workloads::Batch& batch) {
  const std::string documents = batch.context() < batch.sequence ? fmt::format(" in documents of {}", batch.document) : "";
  return fmt::format("{} sequences of {}{}, micro-batch {}", batch.global, batch.sequence, documents, batch.micro);
}

}  // namespace

JobSummary summary_of(const Job& job) {
  return {.name = job.name,
          .model = job.workload.model.name,
          .cluster = job.system.cluster.name,
          .gpu = job.system.gpu.name,
          .layout = layout_of(job.workload),
          .batch = batch_of(job.workload.batch),
          .gpus = job.system.gpus,
          .gpu_memory_bytes = job.system.gpu.memory_bytes,
          .seed = job.system.simulation.seed,
          .input_hash = input_hash(job),
          .resolved_yaml = job.resolved.to_yaml(),
          .faults = job.system.simulation.faults.items};
}

}  // namespace rehearse::sim
