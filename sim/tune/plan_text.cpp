#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sim/job/names.hpp"
#include "sim/tune/report.hpp"
#include "workloads/schedule.hpp"

namespace rehearse::sim {
namespace {

using workloads::Workload;

void add_recomputation(const workloads::Recompute& recompute, std::vector<std::string>& parts) {
  if (recompute.kind == workloads::RecomputeKind::none) return;
  std::string text(workloads::recompute_kinds.of(recompute.kind));
  if (recompute.full_layers >= 0) text += fmt::format(" {}", recompute.full_layers);
  for (const auto output : recompute.kept)
    text += fmt::format("{}{}", output == recompute.kept.front() ? " but " : "+", workloads::layer_outputs.of(output));
  if (recompute.shards_inputs) text += " of sharded inputs";
  std::vector<std::string_view> modules;
  for (const auto module : recompute.modules) modules.push_back(workloads::recompute_modules.of(module));
  parts.push_back(modules.empty() ? text : fmt::format("recompute {}", fmt::join(modules, "+")));
}

void add_overlaps(const Workload& w, std::vector<std::string>& parts) {
  std::vector<std::string_view> hidden;
  const auto add = [&](bool on, std::string_view name) {
    if (on) hidden.push_back(name);
  };
  add(w.overlap.tp && w.parallel.tp > 1, "tp");
  add(w.overlap.cp && w.parallel.cp > 1, "cp");
  add(w.overlap.ep, "ep");
  add(w.overlap.pp && w.parallel.pp > 1, "pp");
  add(w.overlap.dp_gradients, "gradients");
  add(w.overlap.dp_parameters && w.optimizer.zero_stage > 0, "parameters");
  if (!hidden.empty()) parts.push_back(fmt::format("hides {}", fmt::join(hidden, "+")));
}

}  // namespace

std::string plan_text(const Workload& w) {
  const workloads::Parallel& p = w.parallel;
  std::vector<std::string> parts{fmt::format("tp {} pp {} dp {}", p.tp, p.pp, p.dp)};
  const auto degree = [&](std::string_view name, int size, int usual = 1) {
    if (size != usual) parts.push_back(fmt::format("{} {}", name, size));
  };
  degree("cp", p.cp);
  if (w.model.moe) degree("ep", p.ep);
  if (w.model.moe) degree("etp", p.etp, p.tp);
  degree("vpp", p.vpp);
  parts.push_back(fmt::format("b {}", w.batch.micro));
  if (p.pp > 1 && w.schedule != workloads::usual_schedule(p.vpp)) parts.push_back(w.schedule);
  add_recomputation(w.recompute, parts);
  if (w.optimizer.zero_stage > 0) parts.emplace_back(zero_stages.of(w.optimizer.zero_stage));
  if (w.optimizer.no_sync) parts.emplace_back("no_sync");
  if (w.optimizer.on_cpu) parts.emplace_back("cpu optimizer");
  if (w.offload_weights) parts.emplace_back("weights on host");
  if (w.offload_activations) parts.emplace_back("offload");
  if (w.attention == workloads::Attention::unfused) parts.emplace_back("unfused");
  add_overlaps(w, parts);
  return fmt::format("{}", fmt::join(parts, " "));
}

}  // namespace rehearse::sim
