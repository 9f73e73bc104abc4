// A part of a search in a file: what one task of several has found, or how far a search had come when it was ended. Written aside and
// renamed, so that it is there whole or not at all.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "sim/shard.hpp"
#include "sim/tune/search.hpp"

namespace rehearse::sim {

struct ShardState {
  explicit ShardState(const Search& search) : found(search.nothing()), nothing(found), done(search.blocks(), false) {}
  void add(std::uint64_t block, const Found& of_block) {
    found.merge(of_block);
    done[block] = true;
  }
  [[nodiscard]] bool complete(const Shard& shard) const;
  Found found, nothing;    // what there is, and what there was before the first block
  std::vector<bool> done;  // [block]
};

void write_shard(const std::filesystem::path& folder, const Shard& shard, const std::string& hash, const ShardState& state);

// Adds what the file holds to `state`; false where there is no file. Throws config::InputError where it is another search's, or damaged.
bool read_shard(const std::filesystem::path& folder, const Shard& shard, const std::string& hash, ShardState& state);

// All shards in a folder together. Throws where one is missing, has not come to its end, or they are of different searches.
void read_all_shards(const std::filesystem::path& folder, const std::string& hash, ShardState& state);

}  // namespace rehearse::sim
