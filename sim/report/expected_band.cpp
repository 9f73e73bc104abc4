#include "sim/report/expected_band.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "config/data_dir.hpp"

namespace rehearse::sim {
namespace {

using config::Node;

constexpr int known_scale = 2;          // times the most GPUs that were measured
constexpr double unknown_scale = 1.25;  // of the band's width beyond

struct Row {
  std::optional<std::string> gpu, vendor, software;
  std::string as;  // the stack that was measured, where that is another
  std::optional<bool> experts;
  int cases = 0, most_gpus = 0;
  MemoryCounter counter = MemoryCounter::allocated;
  ErrorBand band;
  double half = 1;

  [[nodiscard]] bool matches(const Job& job, const std::string& its_software) const {
    return (!gpu || *gpu == job.system.gpu.name) && (!vendor || *vendor == job.system.gpu.vendor) &&
           (!software || *software == its_software) && (!experts || *experts == job.workload.model.moe.has_value());
  }
  [[nodiscard]] std::string basis(const Job& job) const {
    const std::string of = gpu || software ? fmt::format("{} with {}", gpu.value_or("other GPUs"), software.value_or("other stacks"))
                                           : "other GPUs and stacks";
    return of + runs(job);
  }
  [[nodiscard]] std::string runs(const Job& job) const {
    return fmt::format(": {} runs on up to {} GPUs{}", cases, most_gpus, beyond(job) ? ", this scale not" : "");
  }
  [[nodiscard]] bool beyond(const Job& job) const { return job.system.gpus > known_scale * most_gpus; }
  [[nodiscard]] ErrorBand band_of(const Job& job) const {
    if (!beyond(job)) return band;
    return {std::pow(band.low, unknown_scale), std::pow(band.high, unknown_scale)};
  }
};

Row read_row(const Node& node) {
  node.allow_keys({"gpu", "vendor", "software", "experts", "counter", "cases", "most_gpus", "low", "half", "high", "as"});
  Row row;
  if (const auto gpu = node.find("gpu")) row.gpu = gpu->as_string();
  if (const auto vendor = node.find("vendor")) row.vendor = vendor->as_string();
  if (const auto software = node.find("software")) row.software = software->as_string();
  row.as = node.find("as") ? node.at("as").as_string() : row.software.value_or("other stacks");
  if (const auto experts = node.find("experts")) row.experts = experts->as_bool();
  row.cases = static_cast<int>(node.at("cases").as_number(1, 1e9));
  row.most_gpus = static_cast<int>(node.at("most_gpus").as_number(1, 1e9));
  if (const auto counter = node.find("counter")) row.counter = memory_counters().read(*counter);
  const auto low = node.find("low"), half = node.find("half");
  if (half) row.half = half->as_number(1e-3, 1e3);
  row.band = {low ? low->as_number(1e-3, 1e3) : 1, node.at("high").as_number(1e-3, 1e3)};
  return row;
}

std::optional<Row> first_row(const Node& rows, const Job& job, const std::string& software) {
  for (const Node& node : rows.items()) {
    if (Row row = read_row(node); row.matches(job, software)) return row;
  }
  return std::nullopt;
}

// "nanotron (changed)" keeps nanotron's tensors.
std::string unchanged(const std::string& software) { return software.substr(0, software.find(" (")); }

}  // namespace

MeasuredErrors::MeasuredErrors() {
  const std::string path = config::data_file("platforms", "accuracy");
  if (path.empty()) return;
  document_ = Node::load_file(path);
  document_.allow_keys({"share", "step", "peak", "need"});
}

ExpectedBands MeasuredErrors::bands(const Job& job) const {
  ExpectedBands bands;
  if (!document_) return bands;
  bands.share = document_.at("share").as_number(0, 1);
  const std::string& software = job.system.software.name;
  if (const auto row = first_row(document_.at("step"), job, software)) {
    bands.step = row->band_of(job);
    bands.step_basis = row->basis(job);
  }
  if (const auto row = first_row(document_.at("peak"), job, unchanged(software))) {
    bands.peak = row->band_of(job);
    bands.peak_basis = row->basis(job);
    bands.counter = row->counter;
  }
  return bands;
}

double MostNeed::chance(double needed_share) const {
  constexpr double nine_tenths = 1.2816;  // of the normal distribution
  const double width = std::log(factor / half) / nine_tenths;
  if (width <= 0) return needed_share * factor <= 1 ? 1 : 0;
  return std::erfc((std::log(needed_share * half) / width) / std::numbers::sqrt2) / 2;
}

MostNeed MeasuredErrors::most_need(const Job& job) const {
  if (!document_) return {};
  const auto row = first_row(document_.at("need"), job, unchanged(job.system.software.name));
  if (!row) return {};
  return {std::max(1.0, row->band_of(job).high), row->half, row->as + row->runs(job)};
}

}  // namespace rehearse::sim
