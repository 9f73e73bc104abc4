#include "sim/shard.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstdio>
#include <set>

#include "config/input_error.hpp"

namespace rehearse::sim {
namespace {

constexpr int most_shards = 10'000;

// Into how many parts the files of a folder divide the work.
int parts_in(const std::filesystem::path& folder, const std::string& command) {
  std::set<int> counts;
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator(folder, failed)) {
    const std::string name = entry.path().filename().string();
    int number = 0, of = 0, read = 0;
    if (std::sscanf(name.c_str(), "shard-%d-of-%d.json%n", &number, &of, &read) == 2 && static_cast<std::size_t>(read) == name.size())
      counts.insert(of);
  }
  if (failed) throw config::InputError(fmt::format("cannot read '{}': {}", folder.string(), failed.message()));
  if (counts.empty())
    throw config::InputError(fmt::format("there are no shards in '{}'", folder.string()),
                             fmt::format("rehearse {} JOB --shard K/N -o DIR writes them", command));
  if (counts.size() > 1)
    throw config::InputError(fmt::format("'{}' has shards of {} and of {}", folder.string(), *counts.begin(), *counts.rbegin()),
                             "remove those that are not wanted");
  return *counts.begin();
}

}  // namespace

std::string Shard::file_name() const { return fmt::format("shard-{}-of-{}.json", number, of); }

Shard parse_shard(const std::string& text) {
  Shard shard;
  const char *begin = text.data(), *end = begin + text.size();
  const auto number = std::from_chars(begin, end, shard.number);
  const bool slash = number.ec == std::errc() && number.ptr != end && *number.ptr == '/';
  const auto of = slash ? std::from_chars(number.ptr + 1, end, shard.of) : number;
  if (!slash || of.ec != std::errc() || of.ptr != end || shard.number < 1 || shard.of < shard.number || shard.of > most_shards) {
    throw config::InputError(fmt::format("--shard takes K/N with K from 1 to N, N at most {}, not {}", most_shards, config::shown(text)),
                             "for example --shard 3/8");
  }
  return shard;
}

void read_shards(const std::filesystem::path& folder, const std::string& command, const std::function<ShardFile(const Shard&)>& read) {
  const int of = parts_in(folder, command);
  for (Shard shard{1, of}; shard.number <= of; ++shard.number) {
    const ShardFile file = read(shard);
    if (file == ShardFile::complete) continue;
    const std::string again = fmt::format("run rehearse {} JOB --shard {}/{} -o {}", command, shard.number, of, folder.string());
    if (file == ShardFile::missing) throw config::InputError(fmt::format("shard {} of {} is missing", shard.number, of), again);
    throw config::InputError(fmt::format("shard {} of {} has not come to its end", shard.number, of),
                             again + ": it goes on where it was ended");
  }
}

}  // namespace rehearse::sim
