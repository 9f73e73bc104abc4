#include <fmt/format.h>

#include "sim/job/refusal.hpp"
#include "sim/job/section.hpp"
#include "sim/job/sections.hpp"

namespace rehearse::sim {
namespace {

using config::Dimension;
using config::Node;

constexpr std::int64_t most_steps = 1'000'000'000'000;
constexpr double most_tokens = 1e18;

void check_training(const Node& job) {
  const auto node = job.find("training");
  if (!node) return;
  node->allow_keys({"steps", "tokens"});
  const auto steps = node->find("steps");
  const auto tokens = node->find("tokens");
  if (steps.has_value() == tokens.has_value()) node->fail_at_key("training needs either steps or tokens");
  if (steps) static_cast<void>(steps->as_int(1, most_steps));
  if (tokens) static_cast<void>(tokens->as_number(1, most_tokens));
}

bool is_auto(const Node& node) { return node.is_scalar() && node.as_string() == "auto"; }

bool is_bare_number(const Node& node) {
  return node.is_scalar() && node.as_string().find_first_not_of("0123456789.eE+-") == std::string::npos;
}

// auto, a number of steps, or a time.
void check_interval(const Node& node) {
  if (is_auto(node)) return;
  if (is_bare_number(node)) {
    static_cast<void>(node.as_int(1, most_steps));
  } else if (node.as_quantity(Dimension::time) == 0) {
    node.fail("checkpoint.interval must be longer than 0 s");
  }
}

void check_checkpoint(const Node& job) {
  const Section section(job, "checkpoint", {"interval", "mode", "size", "to"});
  if (const auto interval = section.find("interval")) check_interval(*interval);
  const auto size = section.find("size");
  if (size && !is_auto(*size)) static_cast<void>(size->as_quantity(Dimension::bytes));
  for (const std::string_view key : {"mode", "to"}) {
    if (const auto text = section.find(key)) static_cast<void>(text->as_string());
  }
}

void check_faults(const Node& job) {
  const auto faults = job.find("faults");
  if (faults && faults->is_null()) faults->fail_at_key("faults must be the name of a file, or a scenario, not empty");
}

}  // namespace

void check_whole_job_sections(const Node& job) {
  check_training(job);
  check_checkpoint(job);
  check_faults(job);
}

}  // namespace rehearse::sim
