// A part of work that several tasks divide: "3/8" of it, and the files in which parts are kept.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

namespace rehearse::sim {

// Units K-1, K-1+N, K-1+2N, ... are shard K of N.
struct Shard {
  int number = 1, of = 1;
  [[nodiscard]] bool has(std::uint64_t unit) const {
    return unit % static_cast<std::uint64_t>(of) == static_cast<std::uint64_t>(number - 1);
  }
  [[nodiscard]] std::string file_name() const;  // "shard-3-of-8.json"
};

// "3/8"; throws config::InputError.
[[nodiscard]] Shard parse_shard(const std::string& text);

// What became of a shard's file.
enum class ShardFile { missing, begun, complete };

// Calls `read` with every shard that the files of a folder are parts of. Throws config::InputError where there is none, one is missing or
// has not come to its end, or they divide the work differently; `command` is what writes them ("tune").
void read_shards(const std::filesystem::path& folder, const std::string& command, const std::function<ShardFile(const Shard&)>& read);

}  // namespace rehearse::sim
