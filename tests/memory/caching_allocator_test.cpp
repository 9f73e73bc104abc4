// Does the simulated caching allocator keep what PyTorch's keeps?
#include "sim/memory/caching_allocator.hpp"
#include "places.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace rehearse::sim {
namespace {

using Block = CachingAllocator::Block;
constexpr std::uint64_t mib = 1u << 20u;

// Of tests/memory/data/README.md.
AllocatorSettings settings_of(const std::string& text) {
  AllocatorSettings settings;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) {
    const std::string name = word.substr(0, word.find(':')), value = word.substr(word.find(':') + 1);
    if (name == "expandable_segments") settings.expandable_segments = value == "True";
    if (name == "max_split_size_mb") settings.max_split_bytes = std::stoull(value) * mib;
    if (name == "max_non_split_rounding_mb") settings.max_non_split_rounding_bytes = std::stoull(value) * mib;
    if (name == "garbage_collection_threshold") settings.garbage_collection_threshold = std::stod(value);
    if (name == "roundup_power2_divisions") settings.roundup_power2_divisions = std::stoull(value);
  }
  return settings;
}

class Replay {
 public:
  void header(const std::string& name, std::istream& words) {
    std::string text;
    words >> text;
    if (name == "device") device_ = std::stoull(text);
    if (name == "settings") settings_ = settings_of(text);
    if (name == "fraction") fraction_ = std::stod(text);
  }
  AllocatorState act(const std::string& what, std::istream& words) {
    if (!allocator_) allocator_.emplace(device_, settings_, fraction_);
    std::uint64_t id = 0, bytes = 0;
    int stream = 0;
    if (what == "a") {
      words >> id >> bytes >> stream;
      if (Block* block = allocator_->allocate(bytes, stream)) live_[id] = block;
    } else if (what == "u") {
      words >> id >> stream;
      if (live_.contains(id)) allocator_->use(live_[id], stream);
    } else if (what == "f") {
      words >> id;
      if (const auto found = live_.extract(id)) allocator_->free(found.mapped());
    } else if (what == "d") {
      words >> stream;
      allocator_->finish(stream);
    } else {
      allocator_->empty_cache();
    }
    return allocator_->state();
  }

 private:
  std::uint64_t device_ = 0;
  AllocatorSettings settings_;
  std::optional<double> fraction_;
  std::optional<CachingAllocator> allocator_;
  std::map<std::uint64_t, Block*> live_;
};

AllocatorState read_state(std::istream& words) {
  AllocatorState s;
  std::string colon;
  words >> colon >> s.allocated >> s.reserved >> s.requested >> s.segments >> s.inactive_split >> s.retries >> s.out_of_memory;
  return s;
}

std::string text_of(const AllocatorState& s) {
  std::ostringstream out;
  out << s.allocated << ' ' << s.reserved << ' ' << s.requested << ' ' << s.segments << ' ' << s.inactive_split << ' ' << s.retries << ' '
      << s.out_of_memory;
  return out.str();
}

// Every operation of a file; what the recorded allocator said last.
AllocatorState replay(const std::filesystem::path& file) {
  std::ifstream in(file);
  Replay replay;
  AllocatorState recorded;
  std::size_t operations = 0;
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string what;
    words >> what;
    if (line.find(" : ") == std::string::npos) {
      replay.header(what, words);
      continue;
    }
    const AllocatorState ours = replay.act(what, words);
    recorded = read_state(words);
    ++operations;
    EXPECT_TRUE(ours == recorded) << file.filename() << ": " << line << "\nhere: " << text_of(ours);
    if (!(ours == recorded)) break;
  }
  EXPECT_GE(operations, 1000U) << file;
  return recorded;
}

TEST(CachingAllocator, equals_pytorch_to_the_byte_after_every_operation) {
  std::size_t files = 0;
  std::uint64_t retries = 0, failures = 0;
  for (const auto& entry : std::filesystem::directory_iterator(std::string(REHEARSE_SOURCE_DIR) + "/tests/memory/data")) {
    if (entry.path().extension() != ".txt") continue;
    const AllocatorState last = replay(entry.path());
    ++files;
    retries += last.retries;
    failures += last.out_of_memory;
  }
  EXPECT_EQ(files, 12U);
  EXPECT_GT(retries, 100U);
  EXPECT_GT(failures, 50U);
}

// The rules by hand, on a device of 100 MiB.
TEST(CachingAllocator, takes_segments_by_size) {
  CachingAllocator allocator(100 * mib);
  allocator.allocate(1);
  EXPECT_EQ(allocator.state().allocated, 512U);
  EXPECT_EQ(allocator.state().reserved, 2 * mib);
  allocator.allocate(mib + 1);  // from 20 MiB
  EXPECT_EQ(allocator.state().allocated, 512 + mib + 512);
  EXPECT_EQ(allocator.state().reserved, 22 * mib);
  allocator.allocate(10 * mib + 1);  // fits into the rest of the 20 MiB
  EXPECT_EQ(allocator.state().reserved, 22 * mib);
  allocator.allocate(11 * mib);  // does not; 12 MiB
  EXPECT_EQ(allocator.state().reserved, 34 * mib);
  EXPECT_EQ(allocator.allocate(67 * mib), nullptr);
  EXPECT_EQ(allocator.state().out_of_memory, 1U);
  EXPECT_NE(allocator.allocate(66 * mib), nullptr);
  EXPECT_EQ(allocator.state().reserved, 100 * mib);
}

// Two free segments of 30 MiB serve no 60 MiB at once: they are given back first. Expandable, they are one.
TEST(CachingAllocator, gives_segments_back_where_expandable_ones_grow) {
  for (const bool expandable : {false, true}) {
    CachingAllocator allocator(80 * mib, {.expandable_segments = expandable});
    Block* first = allocator.allocate(30 * mib);
    Block* second = allocator.allocate(30 * mib);
    EXPECT_EQ(allocator.state().reserved, 60 * mib);  // also in pages of 20 MiB: 40 and 60
    allocator.free(first);
    allocator.free(second);
    EXPECT_NE(allocator.allocate(60 * mib), nullptr);
    EXPECT_EQ(allocator.state().reserved, 60 * mib);
    EXPECT_EQ(allocator.state().retries, expandable ? 0U : 1U);
    EXPECT_EQ(allocator.taken(), (expandable ? 60 : 30 + 30 + 60) * mib);
  }
}

TEST(CachingAllocator, keeps_a_block_that_another_stream_uses) {
  CachingAllocator allocator(100 * mib);
  Block* block = allocator.allocate(20 * mib);
  allocator.use(block, 1);
  allocator.free(block);
  EXPECT_NE(allocator.allocate(20 * mib), block);
  EXPECT_EQ(allocator.state().reserved, 40 * mib);
  allocator.finish(1);
  allocator.allocate(20 * mib);
  EXPECT_EQ(allocator.state().reserved, 40 * mib);
}

TEST(CachingAllocator, waits_for_as_many_streams_as_it_knows) {
  CachingAllocator allocator(10000 * mib);
  Block* block = allocator.allocate(20 * mib);
  constexpr int most = CachingAllocator::most_streams;
  for (int stream = 1; stream <= most; ++stream) allocator.use(block, stream);
  EXPECT_THROW(allocator.use(block, most + 1), std::length_error);
  allocator.free(block);
  for (int stream = 1; stream <= most; ++stream) {
    EXPECT_NE(allocator.allocate(20 * mib), block);
    allocator.finish(stream);
  }
  EXPECT_EQ(allocator.allocate(20 * mib), block);
}

AllocatorSettings random_settings(std::mt19937_64& draw) {
  AllocatorSettings settings;
  settings.expandable_segments = draw() % 2 == 0;
  if (draw() % 2 == 0) settings.max_split_bytes = (21 + draw() % 100) * mib;
  if (draw() % 2 == 0) settings.garbage_collection_threshold = 0.3 + 0.1 * static_cast<double>(draw() % 6);
  if (draw() % 2 == 0) settings.roundup_power2_divisions = 1u << (draw() % 4);
  return settings;
}

// Whatever is asked for: blocks in use never overlap, hold what was asked, add up to `allocated`, and lie in memory that was reserved;
// nothing stays once all is free.
TEST(CachingAllocator, never_hands_memory_out_twice) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    std::mt19937_64 draw(seed);
    const std::uint64_t device = (64 + draw() % 1000) * mib;
    CachingAllocator allocator(device, random_settings(draw), draw() % 2 == 0 ? std::optional(0.8) : std::nullopt);
    std::map<std::uint64_t, std::pair<Block*, std::uint64_t>> live;  // by address, with the bytes asked for
    for (int step = 0; step < 500; ++step) {
      if (!live.empty() && draw() % 5 < 2) {
        auto at = std::next(live.begin(), static_cast<std::ptrdiff_t>(draw() % live.size()));
        if (draw() % 4 == 0) allocator.use(at->second.first, static_cast<int>(draw() % 3));
        allocator.free(at->second.first);
        live.erase(at);
      } else {
        const std::uint64_t bytes = 1 + draw() % (std::uint64_t{1} << (1 + draw() % 28));
        Block* block = allocator.allocate(bytes, static_cast<int>(draw() % 2));
        if (block != nullptr) live[block->address] = {block, bytes};
      }
      if (draw() % 20 == 0) allocator.finish(static_cast<int>(draw() % 3));
      std::uint64_t end = 0, held = 0;
      for (const auto& [address, entry] : live) {
        ASSERT_GE(address, end) << "seed " << seed;
        ASSERT_GE(entry.first->bytes, entry.second);
        end = address + entry.first->bytes;
        held += entry.first->bytes;
      }
      ASSERT_EQ(held, allocator.state().allocated);
      ASSERT_LE(held, allocator.state().reserved);
      ASSERT_LE(allocator.state().reserved, device);
    }
    for (const auto& [address, entry] : live) allocator.free(entry.first);
    allocator.empty_cache();
    EXPECT_EQ(allocator.state().allocated + allocator.state().reserved + allocator.state().requested + allocator.state().inactive_split, 0U)
        << "seed " << seed;
  }
}

}  // namespace
}  // namespace rehearse::sim
