#include "sim/tune/shard_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "config/input_error.hpp"
#include "sim/report/whole_file.hpp"

namespace rehearse::sim {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

constexpr const char* format = "rehearse tune shard 5";

Json json_of(const Candidate& c) {
  return {c.point, c.goals, c.step_s, c.peak_bytes, c.needed_bytes, c.lacks_bytes, c.layout, c.dp, c.twins, c.free_axes};
}

Candidate candidate_of(const Json& json) {
  Candidate c;
  c.point = json.at(0).get<std::uint64_t>();
  c.goals = json.at(1).get<GoalArray>();
  c.step_s = json.at(2).get<double>();
  c.peak_bytes = json.at(3).get<double>();
  c.needed_bytes = json.at(4).get<double>();
  c.lacks_bytes = json.at(5).get<double>();
  c.layout = json.at(6).get<std::array<int, 7>>();
  c.dp = json.at(7).get<int>();
  c.twins = json.at(8).get<std::uint64_t>();
  c.free_axes = json.at(9).get<std::uint64_t>();
  return c;
}

Json json_of(const std::vector<Candidate>& all) {
  Json json = Json::array();
  for (const Candidate& one : all) json.push_back(json_of(one));
  return json;
}

Json json_of(const Found& found) {
  Json values = Json::array();
  for (const auto& axis : found.of_value) {
    Json& row = values.emplace_back(Json::array());
    for (const auto& best : axis) row.push_back(best ? json_of(*best) : Json());
  }
  Json pairs = Json::array();  // null: no plan is known
  for (const double best : found.pairs.all()) pairs.push_back(std::isfinite(best) ? Json(best) : Json());
  Json every = Json::array();
  for (const Evaluated& one : found.every) every.push_back({json_of(one.candidate), static_cast<int>(one.fit)});
  return {{"points", found.points},
          {"evaluated", found.evaluated},
          {"do_not_fit", found.unfit},
          {"may_run_out", found.may_run_out},
          {"refused", found.refused},
          {"first_refused", found.first_refused},
          {"left_out", found.cut},
          {"best", json_of(found.best.all())},
          {"front", json_of(found.front.all())},
          {"of_value", values},
          {"pairs", pairs},
          {"every", every},
          {"nearest", found.nearest ? json_of(*found.nearest) : Json()}};
}

// Into a find of the same search, which is empty.
void read_found(const Json& json, Found& found) {
  found.points = json.at("points").get<std::uint64_t>();
  found.evaluated = json.at("evaluated").get<std::uint64_t>();
  found.unfit = json.at("do_not_fit").get<std::uint64_t>();
  found.may_run_out = json.at("may_run_out").get<std::uint64_t>();
  const auto refused = json.at("refused").get<std::vector<std::uint64_t>>(),
             first = json.at("first_refused").get<std::vector<std::uint64_t>>();
  for (std::size_t i = 0; i < found.refused.size(); ++i) {
    if (refused.at(i) > 0) found.refuse(i, first.at(i), refused.at(i));
  }
  found.cut = json.at("left_out").get<std::array<std::uint64_t, cut_count>>();
  for (const Json& one : json.at("best")) found.best.add(candidate_of(one));
  for (const Json& one : json.at("front")) found.front.add(candidate_of(one));
  for (std::size_t axis = 0; axis < found.of_value.size(); ++axis) {
    for (std::size_t i = 0; i < found.of_value[axis].size(); ++i) {
      const Json& one = json.at("of_value").at(axis).at(i);
      if (!one.is_null()) found.of_value[axis][i] = candidate_of(one);
    }
  }
  std::vector<double> pairs;
  for (const Json& one : json.at("pairs")) pairs.push_back(one.is_null() ? std::numeric_limits<double>::infinity() : one.get<double>());
  found.pairs.set(pairs);
  for (const Json& one : json.at("every")) found.every.push_back({candidate_of(one.at(0)), static_cast<Fit>(one.at(1).get<int>())});
  if (!json.at("nearest").is_null()) found.nearest = candidate_of(json.at("nearest"));
}

// [first, end) of blocks that are done one after another.
Json ranges_of(const std::vector<bool>& done) {
  Json json = Json::array();
  for (std::size_t i = 0; i < done.size(); ++i) {
    if (!done[i]) continue;
    const std::size_t first = i;
    while (i < done.size() && done[i]) ++i;
    json.push_back({first, i});
  }
  return json;
}

[[noreturn]] void refuse(const fs::path& file, const std::string& why, const std::string& hint = "") {
  throw config::InputError(fmt::format("{} {}", file.string(), why), hint);
}

void read_into(const Json& json, const fs::path& file, const Shard& shard, const std::string& hash, ShardState& state) {
  if (json.at("format").get<std::string>() != format) refuse(file, "was written by another version");
  const auto theirs = json.at("hash").get<std::string>();
  if (theirs != hash) {
    refuse(file, fmt::format("was made by another search (hash {} instead of {})", theirs, hash),
           "the job, its space, the goals, the bounds and the version must be the same; remove the file to begin anew");
  }
  if (json.at("blocks").get<std::uint64_t>() != state.done.size()) refuse(file, "cuts the space otherwise");
  for (const Json& range : json.at("done")) {
    for (auto block = range.at(0).get<std::uint64_t>(); block < range.at(1).get<std::uint64_t>(); ++block) {
      if (!shard.has(block) || state.done.at(block)) refuse(file, fmt::format("has block {}, which is not its own", block));
      state.done[block] = true;
    }
  }
}

}  // namespace

bool ShardState::complete(const Shard& shard) const {
  for (std::uint64_t block = 0; block < done.size(); ++block) {
    if (shard.has(block) && !done[block]) return false;
  }
  return true;
}

void write_shard(const fs::path& folder, const Shard& shard, const std::string& hash, const ShardState& state) {
  fs::create_directories(folder);
  const Json json{{"format", format},
                  {"hash", hash},
                  {"shard", shard.number},
                  {"of", shard.of},
                  {"blocks", state.done.size()},
                  {"done", ranges_of(state.done)},
                  {"found", json_of(state.found)}};
  WholeFile file(folder / shard.file_name());
  file.write([&](std::ostream& out) { out << json.dump() << '\n'; });
  file.put_in_place();
}

bool read_shard(const fs::path& folder, const Shard& shard, const std::string& hash, ShardState& state) {
  const fs::path path = folder / shard.file_name();
  std::ifstream file(path);
  if (!file) return false;
  try {
    const Json json = Json::parse(file);
    read_into(json, path, shard, hash, state);
    Found found = state.nothing;
    read_found(json.at("found"), found);
    state.found.merge(found);
  } catch (const nlohmann::json::exception& error) {
    refuse(path, "is no part of a search, or damaged", "remove the file to begin anew");
  } catch (const std::out_of_range& error) {
    refuse(path, "is of a space with other keys", "remove the file to begin anew");
  }
  return true;
}

void read_all_shards(const fs::path& folder, const std::string& hash, ShardState& state) {
  read_shards(folder, "tune", [&](const Shard& shard) {
    if (!read_shard(folder, shard, hash, state)) return ShardFile::missing;
    return state.complete(shard) ? ShardFile::complete : ShardFile::begun;
  });
}

}  // namespace rehearse::sim
