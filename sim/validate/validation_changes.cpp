// What changed since a stored validation.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>

#include "config/open_file.hpp"
#include "sim/validate/validation_report.hpp"

namespace rehearse::sim {
namespace {

bool is_case(const Json& entry) {
  return entry.is_object() && entry.contains("id") && entry["id"].is_string() && entry.contains("failed") && entry.contains("error_pct") &&
         entry["error_pct"].is_object();
}

bool is_group(const Json& entry) {
  if (!entry.is_object() || !entry.contains("mean_abs_error_pct") || !entry["mean_abs_error_pct"].is_number()) return false;
  for (const char* key : {"group", "metric", "method", "cases"}) {
    if (!entry.contains(key) || !entry[key].is_string()) return false;
  }
  return true;
}

bool is_list_of(const Json& json, const char* key, bool (*fits)(const Json&)) {
  return json.is_object() && json.contains(key) && json[key].is_array() && std::ranges::all_of(json[key], fits);
}

std::string group_key(const Json& group) {
  return fmt::format("{} {} {} {}", group["group"].get<std::string>(), group["metric"].get<std::string>(),
                     group["method"].get<std::string>(), group["cases"].get<std::string>());
}
std::string case_key(const Json& entry) { return entry["id"]; }

std::map<std::string, Json> by_key(const Json& list, std::string (*key)(const Json&)) {
  std::map<std::string, Json> map;
  for (const Json& entry : list) map.emplace(key(entry), entry);
  return map;
}

std::string status(const Json& entry) { return entry["failed"].is_null() ? "ran" : "failed"; }

// Only numbers that both have are compared.
void add_moves(Json& changes, const std::string& id, const Json& before, const Json& now, double threshold_pct) {
  for (const auto& [metric, error] : now["error_pct"].items()) {
    const Json& errors = before["error_pct"];
    if (!errors.contains(metric) || !errors[metric].is_number()) continue;
    if (std::abs(error.get<double>() - errors[metric].get<double>()) <= threshold_pct) continue;
    changes.push_back({{"what", fmt::format("{} {}", id, metric)}, {"before", errors[metric]}, {"now", error}});
  }
}

Json case_changes(const Json& before, const Json& now, double threshold_pct) {
  Json changes = Json::array();
  const auto old_cases = by_key(before["cases"], case_key);
  const auto new_cases = by_key(now["cases"], case_key);
  for (const auto& [id, entry] : new_cases) {
    const auto old = old_cases.find(id);
    if (old == old_cases.end()) {
      changes.push_back({{"what", id}, {"before", "absent"}, {"now", status(entry)}});
    } else if (status(old->second) != status(entry)) {
      changes.push_back({{"what", id}, {"before", status(old->second)}, {"now", status(entry)}});
    } else {
      add_moves(changes, id, old->second, entry, threshold_pct);
    }
  }
  for (const auto& [id, entry] : old_cases) {
    if (!new_cases.contains(id)) changes.push_back({{"what", id}, {"before", status(entry)}, {"now", "absent"}});
  }
  return changes;
}

Json group_changes(const Json& before, const Json& now, double threshold_pct) {
  Json changes = Json::array();
  const auto old_groups = by_key(before["groups"], group_key);
  for (const Json& group : now["groups"]) {
    const auto old = old_groups.find(group_key(group));
    if (old == old_groups.end()) continue;
    const Json& mean = old->second["mean_abs_error_pct"];
    if (std::abs(mean.get<double>() - group["mean_abs_error_pct"].get<double>()) <= threshold_pct) continue;
    changes.push_back({{"what", group_key(group)}, {"before", mean}, {"now", group["mean_abs_error_pct"]}});
  }
  return changes;
}

}  // namespace

Json read_stored_validation(const std::string& path) {
  std::ifstream file = config::open_file(path);
  Json stored = Json::parse(file, nullptr, false);
  if (!is_list_of(stored, "cases", is_case) || !is_list_of(stored, "groups", is_group)) {
    throw config::InputError(config::shown(path) + " holds no validation", "store one with rehearse validate FILE... --json > before.json");
  }
  return stored;
}

ValidationChanges validation_changes(const Json& before, const Json& now, double threshold_pct) {
  return {case_changes(before, now, threshold_pct), group_changes(before, now, threshold_pct)};
}

}  // namespace rehearse::sim
