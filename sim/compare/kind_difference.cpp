#include "sim/compare/kind_difference.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "config/input_error.hpp"

namespace rehearse::sim {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t most_items = 8;  // of a list without names
// Who made the result of what: no number that is found out.
constexpr std::array<std::string_view, 6> head_keys{"format", "version", "job", "seed", "input_hash", "kind"};

std::string name_in(const std::string& path, const std::string& key) { return path.empty() ? key : path + "." + key; }

void add_numbers(const std::string& path, const Json& json, std::vector<std::pair<std::string, double>>& out) {
  if (json.is_number()) out.emplace_back(path, json.get<double>());
  if (json.is_object()) {
    for (const auto& [key, value] : json.items()) {
      const bool head = path.empty() && std::ranges::find(head_keys, key) != head_keys.end();
      if (!head) add_numbers(name_in(path, key), value, out);
    }
  }
  if (!json.is_array()) return;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const bool named = json[i].is_object() && json[i].contains("name") && json[i]["name"].is_string();
    if (!named && json.size() > most_items) return;
    add_numbers(name_in(path, named ? json[i]["name"].get<std::string>() : std::to_string(i)), json[i], out);
  }
}

bool has_methods(const Json& result) { return result.contains("results") && result["results"].is_object() && !result["results"].empty(); }

// The simulation where both have one, else what else both have.
std::string common_method(const KindSide& a, const KindSide& b) {
  for (const char* method : {"simulated", "analytic"}) {
    if (a.result["results"].contains(method) && b.result["results"].contains(method)) return method;
  }
  throw config::InputError(fmt::format("'{}' and '{}' have no method in common: one is simulated, the other by formula", a.name, b.name),
                           "rehearse compare JOB -o DIR writes both");
}

}  // namespace

KindDifference difference_of(const KindSide& a, const KindSide& b) {
  if (a.kind != b.kind) {
    const auto words = [](const KindSide& side) {
      return side.kind.empty() ? fmt::format("'{}' is a training job", side.name)
                               : fmt::format("'{}' is a job with the section '{}'", side.name, side.kind);
    };
    throw config::InputError(fmt::format("{}, and {}", words(a), words(b)), "diff takes two jobs, or results, of one kind");
  }
  KindDifference difference{.a = a.name, .b = b.name, .method = {}, .keys = differing_keys(a.job, b.job), .metrics = {}};
  const bool methods = has_methods(a.result) && has_methods(b.result);
  if (methods) difference.method = common_method(a, b);
  std::vector<std::pair<std::string, double>> of_a, of_b;
  add_numbers("", methods ? a.result["results"][difference.method] : a.result, of_a);
  add_numbers("", methods ? b.result["results"][difference.method] : b.result, of_b);
  for (const auto& [name, value] : of_a) {
    const auto same = std::ranges::find(of_b, name, &std::pair<std::string, double>::first);
    if (same != of_b.end()) difference.metrics.push_back({name, value, same->second});
  }
  return difference;
}

}  // namespace rehearse::sim
