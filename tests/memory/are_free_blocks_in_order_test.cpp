// Are free blocks found by stream, size and address, as a sorted set finds them?
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <set>
#include <tuple>
#include <vector>

#include "sim/memory/allocator_blocks.hpp"

namespace rehearse::tests {
namespace {

using sim::allocator::Block;
using sim::allocator::FreeBlocks;

struct InOrder {
  bool operator()(const Block* a, const Block* b) const {
    return std::tie(a->stream, a->bytes, a->address) < std::tie(b->stream, b->bytes, b->address);
  }
};

// The one list, and the set that it stands for.
class Both {
 public:
  // One size in so many is any.
  explicit Both(std::uint64_t seed, std::uint64_t any = 3) : random_(seed), any_(any) {}

  void act() {
    if (set_.empty() || below(5) < 3) {
      insert();
    } else {
      erase();
    }
  }

  void compare() {
    EXPECT_EQ(list_.all(), std::vector<Block*>(set_.begin(), set_.end()));
    Block key;
    key.stream = static_cast<int>(below(4));
    key.bytes = size();
    const auto found = set_.lower_bound(&key);
    const auto of_stream = [&](auto at) { return at != set_.end() && (*at)->stream == key.stream ? *at : nullptr; };
    EXPECT_EQ(list_.first(key.stream, key.bytes), of_stream(found));
    for (auto at = found; of_stream(at) != nullptr; ++at) EXPECT_EQ(list_.after(*at), of_stream(std::next(at)));
  }

 private:
  std::uint64_t below(std::uint64_t end) { return random_() % end; }
  // Mostly of a few sizes, as tensors are; some of any.
  std::uint64_t size() { return 512 * (below(any_) == 0 ? 1 + below(1000000) : 1 + below(10) * 4096); }

  void insert() {
    Block& block = *blocks_.emplace_back(std::make_unique<Block>());
    block.stream = static_cast<int>(below(3));
    block.bytes = size();
    block.address = 512 * below(std::uint64_t{1} << 40U);
    list_.insert(&block);
    set_.insert(&block);
  }
  void erase() {
    const auto at = std::next(set_.begin(), static_cast<std::ptrdiff_t>(below(set_.size())));
    list_.erase(*at);
    set_.erase(at);
  }

  std::mt19937_64 random_;
  std::uint64_t any_;
  std::vector<std::unique_ptr<Block>> blocks_;
  FreeBlocks list_;
  std::set<Block*, InOrder> set_;
};

TEST(FreeBlocks, AreInTheOrderOfASortedSet) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Both both(seed);
    both.compare();
    for (int i = 0; i < 400; ++i) {
      both.act();
      if (i % 10 == 0) both.compare();
    }
  }
}

// What routed experts get: thousands of sizes, of which none comes again.
TEST(FreeBlocks, AreInOrderWhereNoSizeComesAgain) {
  Both both(1, 1);
  for (int i = 0; i < 6000; ++i) {
    both.act();
    if (i % 500 == 0) both.compare();
  }
  both.compare();
}

}  // namespace
}  // namespace rehearse::tests
