#include "sim/import/finish.hpp"

#include <fmt/format.h>

#include "sim/job/job.hpp"
#include "sim/job/parts.hpp"
#include "topology/cluster.hpp"
#include "workloads/model.hpp"

namespace rehearse::sim {
namespace {

using config::Node;
using Settings = std::vector<std::pair<std::string, std::string>>;

std::string_view name_of(Draft::Kind kind) { return kind == Draft::Kind::job ? "job" : kind == Draft::Kind::model ? "model" : "cluster"; }

void complete(Draft& draft, const Settings& settings) {
  // What names a part goes before what changes it.
  for (const bool parts : {true, false}) {
    for (const auto& [key, value] : settings) {
      if ((key.find('.') == std::string::npos) == parts) draft.override_with(key, value);
    }
  }
  std::string missing, hint;
  for (const Need& need : draft.needs) {
    if (draft.document() && draft.document().find_path(need.key)) continue;
    missing += fmt::format("\n  {}: {}", need.key, need.why);
    hint += fmt::format(" --set {}=...", need.key);
  }
  if (!missing.empty()) throw config::InputError("the file leaves open:" + missing, "give them:" + hint);
}

// What the document's own reader says of it; throws where it refuses. A line for people.
std::string checked(Draft::Kind kind, const Node& document, const std::string& name) {
  if (kind == Draft::Kind::model) {
    const workloads::Model model = workloads::read_model(document, name);
    return fmt::format("{:.4g} billion parameters", workloads::count_parameters(model).total / 1e9);
  }
  if (kind == Draft::Kind::cluster) {
    Part part{name, document};
    const Part gpu = take_gpu(part);
    const topology::ClusterSpec cluster = topology::read_cluster(part.node, name);
    return fmt::format("nodes of {} x {}", cluster.gpus_per_node, gpu.name);
  }
  const Job job = read_job(document, name);
  const double parameters = workloads::count_parameters(job.workload.model).total;
  return fmt::format("{:.4g} billion parameters on {} x {}", parameters / 1e9, job.system.gpus, job.system.gpu.name);
}

}  // namespace

FinishedImport finish_import(Draft draft, const Settings& settings, const std::string& name) {
  complete(draft, settings);
  Node document = in_order(draft.document());
  std::string summary = fmt::format("{}: {}", name_of(draft.kind()), checked(draft.kind(), document, name));
  return {std::move(document), std::move(summary)};
}

}  // namespace rehearse::sim
