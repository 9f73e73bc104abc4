// A part of many runs of a whole job in a file: what one task of several has run, or how far it had come when it was ended. Written aside
// and renamed, so that it is there whole or not at all.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "sim/shard.hpp"
#include "sim/wholejob/run_result.hpp"
#include "sim/wholejob/simulate_run.hpp"

namespace rehearse::sim {

// Every run of every value of a sweep (one value where nothing is swept); run i of value v is unit v * runs + i.
struct RunsState {
  RunsState(std::size_t values, std::size_t runs) : results(values * runs) {}
  std::vector<std::optional<RunResult>> results;  // [unit]; nothing: not run yet
  StateCounts states;                             // where nothing is swept
  [[nodiscard]] bool complete(const Shard& shard) const;
};

void write_runs(const std::filesystem::path& folder, const Shard& shard, const std::string& hash, const RunsState& state);

// Adds what the file holds to `state`; false where there is no file. Throws config::InputError where it is of other runs, or damaged.
bool read_runs(const std::filesystem::path& folder, const Shard& shard, const std::string& hash, RunsState& state);

// All shards in a folder together. Throws where one is missing, has not come to its end, or they are of different runs.
void read_all_runs(const std::filesystem::path& folder, const std::string& hash, RunsState& state);

}  // namespace rehearse::sim
