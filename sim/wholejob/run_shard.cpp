#include "sim/wholejob/run_shard.hpp"

#include <fmt/format.h>

#include <bit>
#include <fstream>
#include <nlohmann/json.hpp>

#include "config/input_error.hpp"
#include "sim/report/whole_file.hpp"

namespace rehearse::sim {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

constexpr const char* format_of_runs = "rehearse run shard 1";

// Bit for bit: nanoseconds are among them.
Json bits_of(const RunResult& result) {
  Json json = Json::array();
  for (const double number : to_numbers(result)) json.push_back(std::bit_cast<std::uint64_t>(number));
  return json;
}

RunResult result_of(const Json& json) {
  std::vector<double> numbers;
  for (const Json& bits : json) numbers.push_back(std::bit_cast<double>(bits.get<std::uint64_t>()));
  return from_numbers(numbers);
}

[[noreturn]] void refuse_runs(const fs::path& file, const std::string& why, const std::string& hint) {
  throw config::InputError(fmt::format("{} {}", file.string(), why), hint);
}

void read_into(const Json& json, const fs::path& file, const Shard& shard, const std::string& hash, RunsState& state) {
  if (json.at("format").get<std::string>() != format_of_runs) refuse_runs(file, "was written by another command or version", "");
  const auto theirs = json.at("hash").get<std::string>();
  if (theirs != hash) {
    refuse_runs(file, fmt::format("was made by other runs (hash {} instead of {})", theirs, hash),
                "the job, its step, --runs, --sweep and the version must be the same; remove the file to begin anew");
  }
  for (const Json& run : json.at("runs")) {
    const auto unit = run.at(0).get<std::size_t>();
    if (!shard.has(unit) || state.results.at(unit))
      refuse_runs(file, fmt::format("has run {}, which is not its own", unit), "remove the file to begin anew");
    state.results[unit] = result_of(run.at(1));
  }
  state.states = {json.at("states").at(0).get<std::size_t>(), json.at("states").at(1).get<std::size_t>()};
}

}  // namespace

bool RunsState::complete(const Shard& shard) const {
  for (std::size_t unit = 0; unit < results.size(); ++unit) {
    if (shard.has(unit) && !results[unit]) return false;
  }
  return true;
}

void write_runs(const fs::path& folder, const Shard& shard, const std::string& hash, const RunsState& state) {
  fs::create_directories(folder);
  Json runs = Json::array();
  for (std::size_t unit = 0; unit < state.results.size(); ++unit) {
    if (state.results[unit]) runs.push_back({unit, bits_of(*state.results[unit])});
  }
  const Json json{{"format", format_of_runs},
                  {"hash", hash},
                  {"shard", shard.number},
                  {"of", shard.of},
                  {"states", {state.states.met, state.states.worked_out}},
                  {"runs", runs}};
  WholeFile file(folder / shard.file_name());
  file.write([&](std::ostream& out) { out << json.dump() << '\n'; });
  file.put_in_place();
}

bool read_runs(const fs::path& folder, const Shard& shard, const std::string& hash, RunsState& state) {
  const fs::path path = folder / shard.file_name();
  std::ifstream file(path);
  if (!file) return false;
  const std::string damaged = "is no part of many runs, or damaged", anew = "remove the file to begin anew";
  try {
    read_into(Json::parse(file), path, shard, hash, state);
  } catch (const nlohmann::json::exception&) {
    refuse_runs(path, damaged, anew);
  } catch (const std::out_of_range&) {
    refuse_runs(path, damaged, anew);
  }
  return true;
}

void read_all_runs(const fs::path& folder, const std::string& hash, RunsState& state) {
  read_shards(folder, "run", [&](const Shard& shard) {
    if (!read_runs(folder, shard, hash, state)) return ShardFile::missing;
    return state.complete(shard) ? ShardFile::complete : ShardFile::begun;
  });
}

}  // namespace rehearse::sim
