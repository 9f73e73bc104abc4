#include "sim/validate/measured_case.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <map>

#include "sim/job/limits.hpp"

namespace rehearse::sim {
namespace {

using config::Node;
namespace fs = std::filesystem;

// models.yaml beside the file, else one folder up.
Node models_of(const fs::path& file) {
  const fs::path folder = file.parent_path();
  for (const fs::path& candidate : {folder / "models.yaml", folder / ".." / "models.yaml"}) {
    std::error_code ignored;
    if (fs::is_regular_file(candidate, ignored)) return Node::load_file(candidate.lexically_normal().string());
  }
  return {};
}

Metrics read_measured(const Node& node) {
  std::vector<std::string> known;
  for (const Metric metric : all_metrics()) known.emplace_back(name_of(metric));
  known.emplace_back("fits");
  node.allow_keys(known);
  Metrics measured;
  for (const Metric metric : all_metrics()) {
    // Larger than any measurement, smaller than what overflows when divided.
    if (const auto value = node.find(name_of(metric))) measured[metric] = value->as_number(1e-12, 1e15);
  }
  if (measured.empty() && !node.find("fits")) node.fail("a case needs a measurement", "for example measured: {step_s: 13.75}");
  return measured;
}

std::optional<bool> read_fits(const Node& node, const Metrics& measured) {
  const auto said = node.find("fits");
  if (!said) return measured.contains(Metric::step_s) || measured.contains(Metric::passes_s) ? std::optional(true) : std::nullopt;
  const bool fits = said->as_bool();
  if (!fits && !measured.empty()) said->fail("a job that ran out of memory has no other measurement", "write measured: {fits: false}");
  return fits;
}

// What is allocated in an update no formula says.
MemoryTime read_time(const Node& step, MemoryCounter counter) {
  const MemoryTime time = memory_times().read(step);
  if (time == MemoryTime::update && counter != MemoryCounter::reserved)
    step.fail("memory_step: update is of what is reserved", "memory: reserved");
  return time;
}

MeasuredCase read_case(const Node& node, const Node& models) {
  node.allow_keys({"id", "source", "group", "job", "measured", "memory", "memory_stage", "memory_step", "inferred", "sweep", "notes"});
  MeasuredCase measured_case;
  measured_case.id = node.at("id").as_string();
  measured_case.source = node.at("source").as_string();
  measured_case.group = node.find("group") ? node.at("group").as_string() : "other";
  measured_case.job = node.at("job");
  if (!measured_case.job.is_map()) measured_case.job.fail_at_key("job must be a mapping");
  measured_case.models = models;
  measured_case.measured = read_measured(node.at("measured"));
  measured_case.fits = read_fits(node.at("measured"), measured_case.measured);
  if (const auto sweep = node.find("sweep")) measured_case.sweep = sweep->as_string();
  if (const auto memory = node.find("memory")) measured_case.memory.counter = memory_counters().read(*memory);
  if (const auto stage = node.find("memory_stage")) measured_case.memory.stage = static_cast<int>(stage->as_int(0, most_gpus - 1));
  if (const auto step = node.find("memory_step")) {
    if (!measured_case.measured.contains(Metric::peak_memory_gib))
      step->fail("memory_step says of which step peak_memory_gib is", "measured: {peak_memory_gib: 40}, or leave memory_step out");
    measured_case.memory.time = read_time(*step, measured_case.memory.counter);
  }
  if (const auto inferred = node.find("inferred")) {
    for (const Node& field : inferred->items()) measured_case.inferred.push_back(field.as_string());
  }
  return measured_case;
}

}  // namespace

std::vector<MeasuredCase> read_cases(const std::vector<std::string>& paths) {
  std::vector<MeasuredCase> cases;
  std::map<std::string, config::Position> seen;
  for (const std::string& path : paths) {
    const Node document = Node::load_file(path);
    const Node models = models_of(path);
    for (const Node& node : document.items()) {
      MeasuredCase next = read_case(node, models);
      const config::Position where = node.at("id").where();
      const auto [first, added] = seen.try_emplace(next.id, where);
      if (!added) {
        node.at("id").fail(fmt::format("the id {} stands for another case already", config::shown(next.id)),
                           fmt::format("the first one is at {}:{}", first->second.file, first->second.line));
      }
      cases.push_back(std::move(next));
    }
  }
  return cases;
}

}  // namespace rehearse::sim
