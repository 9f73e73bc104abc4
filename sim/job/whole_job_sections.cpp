#include <fmt/format.h>

#include "config/quantity.hpp"
#include "sim/job/refusal.hpp"
#include "sim/job/section.hpp"
#include "sim/job/sections.hpp"
#include "sim/wholejob/policy.hpp"
#include "workloads/names.hpp"

namespace rehearse::sim {
namespace {

using config::Dimension;
using config::Node;

constexpr std::int64_t most_steps = 1'000'000'000'000;
constexpr double most_tokens = 1e18;

const workloads::Names<Store> stores{{"disk", Store::disk}, {"shared", Store::shared}, {"memory", Store::memory}};

double time_of(const Node& node) {
  const double seconds = node.as_quantity(Dimension::time);
  if (seconds > longest_job_s) node.fail(fmt::format("{} is longer than 100 years", node.path()));
  return seconds;
}

double positive_time(const Node& node) {
  const double seconds = time_of(node);
  if (to_ns(seconds) == 0) node.fail(node.path() + " must be longer than 0 s");
  return seconds;
}

std::optional<double> time_at(const Section& section, std::string_view key) {
  const auto node = section.find(key);
  return node ? std::optional(time_of(*node)) : std::nullopt;
}

bool is_auto(const Node& node) { return node.is_scalar() && node.as_string() == "auto"; }

// A time that is computed from the storage when it is "auto" or left out.
std::optional<double> time_or_auto(const Section& section, std::string_view key) {
  const auto node = section.find(key);
  return node && !is_auto(*node) ? std::optional(time_of(*node)) : std::nullopt;
}

void read_training(const Node& job, WholeJob& whole) {
  const auto node = job.find("training");
  if (!node) return;
  const Section section(job, "training", {"steps", "tokens", "time", "step", "init", "data"});
  const auto steps = node->find("steps");
  const auto tokens = node->find("tokens");
  const auto time = node->find("time");
  if (int{steps.has_value()} + int{tokens.has_value()} + int{time.has_value()} != 1) {
    node->fail_at_key("training needs one of steps, tokens and time");
  }
  if (steps) whole.training.steps = steps->as_int(1, most_steps);
  if (tokens) whole.training.tokens = tokens->as_number(1, most_tokens);
  if (time) whole.training.time_s = positive_time(*time);
  whole.init_s = time_at(section, "init").value_or(whole.init_s);
  if (const auto step = node->find("step")) whole.step_s = positive_time(*step);
  whole.data_s = time_at(section, "data").value_or(whole.data_s);
}

bool is_bare_number(const Node& node) {
  return node.is_scalar() && node.as_string().find_first_not_of("0123456789.eE+-") == std::string::npos;
}

// auto, a number of steps, or a time.
CheckpointInterval read_interval(const Node& node) {
  if (is_auto(node)) return {};
  if (is_bare_number(node)) return {.steps = node.as_int(1, most_steps)};
  return {.time_s = positive_time(node)};
}

CheckpointBackup read_backup(const Node& node) {
  node.allow_keys({"interval", "to", "save_time", "load_time"});
  CheckpointBackup backup;
  backup.interval_steps = node.at("interval").as_int(1, most_steps);
  if (const auto to = node.find("to")) backup.to = stores.read(*to);
  if (backup.to == Store::memory) node.at("to").fail("a backup is kept on disk or shared storage");
  if (const auto save = node.find("save_time"); save && !is_auto(*save)) backup.save_s = time_of(*save);
  if (const auto load = node.find("load_time"); load && !is_auto(*load)) backup.load_s = time_of(*load);
  return backup;
}

// Each part of a checkpoint in memory lies on so many nodes.
void check_copies(const Section& section, const CheckpointSpec& spec, int nodes) {
  if (spec.to != Store::memory || spec.copies <= nodes) return;
  const std::string why = fmt::format("{} copies of a checkpoint in memory need as many nodes, and the job has {}", spec.copies, nodes);
  if (const auto copies = section.find("copies")) copies->fail(why);
  section.find("to")->fail(why + " (copies is 2 unless given)");
}

CheckpointSpec read_checkpoint(const Node& job, int nodes) {
  constexpr double largest_slowdown = 1000;
  constexpr int most_copies = 100;
  const Section section(job, "checkpoint",
                        {"interval", "mode", "size", "to", "save_time", "load_time", "stall", "slowdown", "copies", "backup"});
  CheckpointSpec spec;
  if (const auto interval = section.find("interval")) spec.interval = read_interval(*interval);
  if (const auto mode = section.find("mode")) spec.async = mode->as_choice({"sync", "async"}) == "async";
  if (const auto size = section.find("size"); size && !is_auto(*size)) spec.size_bytes = size->as_quantity(Dimension::bytes);
  if (const auto to = section.find("to")) spec.to = stores.read(*to);
  spec.save_s = time_or_auto(section, "save_time");
  spec.load_s = time_or_auto(section, "load_time");
  spec.stall_s = time_or_auto(section, "stall");
  if (const auto slowdown = section.find("slowdown")) spec.slowdown = slowdown->as_number(1, largest_slowdown);
  spec.copies = section.integer("copies", 1, most_copies, spec.copies);
  check_copies(section, spec, nodes);
  if (const auto backup = section.find("backup")) spec.backup = read_backup(*backup);
  for (const std::string_view key : {"stall", "slowdown"}) {
    if (const auto given = section.find(key); given && !spec.async) given->fail_at_key(fmt::format("{} is for mode async", key));
  }
  return spec;
}

std::optional<int> read_spares(const Node& node) {
  if (node.is_scalar() && node.as_string() == "unlimited") return std::nullopt;
  return static_cast<int>(node.as_int(0, most_gpus));
}

RecoverySpec read_recovery(const Node& job) {
  const Section section(job, "recovery", {"policy", "process", "pod", "job", "detection", "spares", "repair", "when_empty", "swap"});
  RecoverySpec spec;
  if (const auto policy = section.find("policy")) spec.policy = policy->as_choice(RecoveryPolicyRegistry::names());
  for (const FaultLevel level : {FaultLevel::process, FaultLevel::pod, FaultLevel::job}) {
    if (const auto time = section.find(fault_levels.of(level))) spec.time[static_cast<std::size_t>(level)] = DurationLaw::read(*time);
  }
  if (const auto detection = section.find("detection")) spec.detection = DurationLaw::read(*detection);
  if (const auto repair = section.find("repair")) spec.repair = DurationLaw::read(*repair);
  if (const auto swap = section.find("swap")) spec.swap = DurationLaw::read(*swap);
  if (const auto spares = section.find("spares")) spec.spares = read_spares(*spares);
  if (const auto empty = section.find("when_empty")) spec.shrink_when_empty = empty->as_choice({"wait", "shrink"}) == "shrink";
  if (spec.policy == "shrink" && !spec.spares) spec.spares = 0;
  const bool needs_repair = spec.spares.has_value();
  if (needs_repair && spec.repair.mean_s() <= 0) {
    refuse(job, "recovery", "recovery.repair is needed where nodes come back from repair (spares, or policy shrink)",
           "for example repair: 4 h");
  }
  return spec;
}

}  // namespace

WholeJob read_whole_job(const Node& job, const FaultContext& context) {
  WholeJob whole;
  read_training(job, whole);
  whole.checkpoint = read_checkpoint(job, context.nodes);
  whole.recovery = read_recovery(job);
  const auto faults = job.find("faults");
  if (!faults) return whole;
  if (faults->is_null()) faults->fail_at_key("faults must be the name of a file, or a scenario, not empty");
  whole.faults = FaultScenario::read(*faults, context);
  return whole;
}

}  // namespace rehearse::sim
