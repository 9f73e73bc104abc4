#include "sim/compare/difference.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>

#include "config/input_error.hpp"
#include "sim/analytic/predict.hpp"
#include "sim/job/job.hpp"
#include "sim/memory/allocator_peaks.hpp"

namespace rehearse::sim {
namespace {

using config::Node;

constexpr double s_per_hour = 3600;
constexpr double least_share = 1e-4;  // of the step: a smaller change needs no reason

// Keys of both, those of A first, in their order.
std::vector<std::string> all_keys(const Node& a, const Node& b) {
  std::vector<std::string> keys = a.keys();
  for (const std::string& key : b.keys()) {
    if (std::ranges::find(keys, key) == keys.end()) keys.push_back(key);
  }
  return keys;
}

std::string text_of(const std::optional<Node>& node) { return node ? config::one_line(*node) : ""; }

bool is_part(const std::optional<Node>& node) { return node && node->is_map(); }

void add_differences(const std::string& path, const std::optional<Node>& a, const std::optional<Node>& b, std::vector<KeyDifference>& out) {
  if (is_part(a) && is_part(b)) {
    for (const std::string& key : all_keys(*a, *b)) add_differences(path.empty() ? key : path + "." + key, a->find(key), b->find(key), out);
    return;
  }
  if (text_of(a) != text_of(b)) out.push_back({path, text_of(a), text_of(b)});
}

// The sentence of an error, without its place: that is in no file.
std::string sentence_of(const config::InputError& error) {
  constexpr std::string_view mark = "error: ";
  std::string text = error.what();
  text.resize(std::min(text.find('\n'), text.size()));
  const std::size_t found = text.find(mark);
  return found == std::string::npos ? text : text.substr(found + mark.size());
}

void put(const Node& from, const std::string& part, Node& into) {
  if (const std::optional<Node> theirs = from.find(part)) {
    into.set_child(part, *theirs);
  } else {
    into = into.without(part);
  }
}

PartAlone with_parts(const Node& a, const Node& b, const std::vector<std::string>& parts, const StepNumbers& before) {
  PartAlone alone{.part = fmt::format("{}", fmt::join(parts, ", "))};
  Node changed = a;
  for (const std::string& part : parts) put(b, part, changed);
  try {
    const Job job = read_job(changed, "A with B's " + alone.part);
    const StepNumbers after = numbers_of(with_allocator(job, predict(job)), job.system.gpus);
    alone.step_s = after.step_s - before.step_s;
    alone.needed_bytes = after.needed_bytes - before.needed_bytes;
    for (std::size_t i = 0; i < phase_count; ++i) alone.phases.seconds[i] = after.mean.seconds[i] - before.mean.seconds[i];
  } catch (const config::InputError& error) {
    alone.refusal = sentence_of(error);
  }
  return alone;
}

// First keys of what differs, but for the name, which changes nothing.
std::vector<std::string> differing_parts(const std::vector<KeyDifference>& keys) {
  std::vector<std::string> parts;
  for (const KeyDifference& difference : keys) {
    const std::string part = difference.key.substr(0, difference.key.find('.'));
    if (part != "name" && std::ranges::find(parts, part) == parts.end()) parts.push_back(part);
  }
  return parts;
}

// Parts that A cannot have alone are tried together: gpus and parallel must agree.
std::vector<PartAlone> parts_alone(const Node& a, const Node& b, const std::vector<KeyDifference>& keys) {
  std::vector<PartAlone> parts;
  std::vector<std::string> refused;
  const Job job = read_job(a, "A");
  const StepNumbers before = numbers_of(with_allocator(job, predict(job)), job.system.gpus);
  for (const std::string& part : differing_parts(keys)) {
    parts.push_back(with_parts(a, b, {part}, before));
    if (!parts.back().refusal.empty()) refused.push_back(part);
  }
  if (refused.size() > 1) {
    PartAlone together = with_parts(a, b, refused, before);
    if (together.refusal.empty()) {
      std::erase_if(parts, [](const PartAlone& part) { return !part.refusal.empty(); });
      parts.push_back(std::move(together));
    }
  }
  const auto rank = [](const PartAlone& part) { return std::pair(!part.refusal.empty(), -std::abs(part.step_s)); };
  std::ranges::stable_sort(parts, {}, rank);
  return parts;
}

std::string reason_for(Phase phase, double change_s, const std::vector<PartAlone>& parts, double step_s) {
  if (std::abs(change_s) <= least_share * step_s) return "";
  const PartAlone* best = nullptr;
  for (const PartAlone& part : parts) {
    const double alone_s = part.phases[phase];
    if (alone_s * change_s <= 0 || std::abs(alone_s) <= least_share * step_s) continue;
    if (best == nullptr || std::abs(alone_s) > std::abs(best->phases[phase])) best = &part;
  }
  if (best != nullptr)
    return fmt::format("{} {}: {:+.1f} ms", best->part, best->part.find(',') == std::string::npos ? "alone" : "together",
                       1e3 * best->phases[phase]);
  return parts.size() > 1 ? "no part alone: they act together" : "";
}

}  // namespace

double StepNumbers::gpu_hours_per_token() const { return tokens_per_s > 0 ? gpus / tokens_per_s / s_per_hour : 0; }

StepNumbers numbers_of(const StepResult& result, int gpus) {
  StepNumbers numbers{
      .method = result.method, .gpus = gpus, .step_s = result.step_s, .tokens_per_s = result.tokens_per_s, .mean = result.mean};
  numbers.fits = result.memory.fits();
  for (const RankMemory& rank : result.memory.ranks) {
    if (rank.needed_bytes() <= numbers.needed_bytes) continue;
    numbers.needed_bytes = rank.needed_bytes();
    numbers.capacity_bytes = rank.capacity_bytes;
  }
  return numbers;
}

std::vector<KeyDifference> differing_keys(const Node& a, const Node& b) {
  std::vector<KeyDifference> keys;
  add_differences("", a, b, keys);
  return keys;
}

Difference difference_of(const DifferenceSide& a, const DifferenceSide& b) {
  Difference difference{.a = a.name, .b = b.name, .numbers_a = a.numbers, .numbers_b = b.numbers, .keys = differing_keys(a.job, b.job)};
  difference.parts = parts_alone(a.job, b.job, difference.keys);
  for (std::size_t i = 0; i < phase_count; ++i) {
    PhaseChange change{static_cast<Phase>(i), a.numbers.mean.seconds[i], b.numbers.mean.seconds[i], ""};
    if (change.a_s == 0 && change.b_s == 0) continue;
    change.reason = reason_for(change.phase, change.b_s - change.a_s, difference.parts, a.numbers.step_s);
    difference.phases.push_back(std::move(change));
  }
  return difference;
}

}  // namespace rehearse::sim
