#include "sim/report/expected_band.hpp"

#include <fmt/format.h>

#include <cmath>

#include "config/data_dir.hpp"

namespace rehearse::sim {
namespace {

using config::Node;

constexpr int known_scale = 2;          // times the most GPUs that were measured
constexpr double unknown_scale = 1.25;  // of the band's width beyond

struct Row {
  std::optional<std::string> gpu, software;
  std::optional<bool> experts;
  int cases = 0, most_gpus = 0;
  ErrorBand band;

  [[nodiscard]] bool matches(const Job& job) const {
    return (!gpu || *gpu == job.system.gpu.name) && (!software || *software == job.system.software.name) &&
           (!experts || *experts == job.workload.model.moe.has_value());
  }
  [[nodiscard]] std::string basis(const Job& job) const {
    std::string text = gpu || software ? fmt::format("{} with {}", gpu.value_or("other GPUs"), software.value_or("other stacks"))
                                       : "other GPUs and stacks";
    text += fmt::format(": {} runs on up to {} GPUs", cases, most_gpus);
    return beyond(job) ? text + ", this scale not" : text;
  }
  [[nodiscard]] bool beyond(const Job& job) const { return job.system.gpus > known_scale * most_gpus; }
  [[nodiscard]] ErrorBand band_of(const Job& job) const {
    if (!beyond(job)) return band;
    return {std::pow(band.low, unknown_scale), std::pow(band.high, unknown_scale)};
  }
};

Row read_row(const Node& node) {
  node.allow_keys({"gpu", "software", "experts", "cases", "most_gpus", "low", "high"});
  Row row;
  if (const auto gpu = node.find("gpu")) row.gpu = gpu->as_string();
  if (const auto software = node.find("software")) row.software = software->as_string();
  if (const auto experts = node.find("experts")) row.experts = experts->as_bool();
  row.cases = static_cast<int>(node.at("cases").as_number(1, 1e9));
  row.most_gpus = static_cast<int>(node.at("most_gpus").as_number(1, 1e9));
  row.band = {node.at("low").as_number(1e-3, 1e3), node.at("high").as_number(1e-3, 1e3)};
  return row;
}

void look_up(const Node& rows, const Job& job, std::optional<ErrorBand>& band, std::string& basis) {
  for (const Node& node : rows.items()) {
    const Row row = read_row(node);
    if (!row.matches(job)) continue;
    band = row.band_of(job);
    basis = row.basis(job);
    return;
  }
}

}  // namespace

ExpectedBands expected_bands(const Job& job) {
  ExpectedBands bands;
  const std::string path = config::data_file("platforms", "accuracy");
  if (path.empty()) return bands;
  const Node document = Node::load_file(path);
  document.allow_keys({"share", "step", "peak"});
  bands.share = document.at("share").as_number(0, 1);
  look_up(document.at("step"), job, bands.step, bands.step_basis);
  look_up(document.at("peak"), job, bands.peak, bands.peak_basis);
  return bands;
}

}  // namespace rehearse::sim
