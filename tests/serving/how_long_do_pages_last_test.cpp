// Pages of growing sequences, against every sequence counted pass by pass.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "config/random.hpp"
#include "sim/serving/page_pool.hpp"

namespace rehearse::tests {
namespace {

std::int64_t pages_of(const std::vector<std::int64_t>& tokens, std::int64_t page) {
  std::int64_t sum = 0;
  for (const std::int64_t each : tokens) sum += (each + page - 1) / page;
  return sum;
}

// Sequences come, grow together and go; after each step every number of passes is asked about.
TEST(Pages, last_as_long_as_counting_says) {
  config::Random random(7);
  for (int round = 0; round < 200; ++round) {
    const auto page = static_cast<std::int64_t>(1 + (random.next() % 20));
    std::vector<std::int64_t> tokens;
    sim::PagePool pool(static_cast<std::int64_t>(20 + (random.next() % 200)), static_cast<int>(page));
    for (int step = 0; step < 30; ++step) {
      const auto newcomer = static_cast<std::int64_t>(1 + (random.next() % 100));
      if (pool.pages_for(newcomer) <= pool.available()) {
        tokens.push_back(newcomer);
        pool.take(pool.pages_for(newcomer));
        pool.grow(newcomer);
      }
      if (tokens.size() > 3 && (random.next() % 2) == 0) {
        pool.give(pool.pages_for(tokens.front()));
        pool.stop(tokens.front());
        tokens.erase(tokens.begin());
      }
      ASSERT_EQ(pool.used(), pages_of(tokens, page));
      std::vector<std::int64_t> later = tokens;
      std::int64_t lasts = 0;
      for (std::int64_t passes = 0; passes <= 60; ++passes) {
        const std::int64_t more = pages_of(later, page) - pool.used();
        ASSERT_EQ(pool.more_after(passes), more) << passes;
        if (more <= pool.available()) lasts = passes;
        for (std::int64_t& each : later) ++each;
      }
      for (const std::int64_t limit : {1, 7, 60}) ASSERT_EQ(pool.passes_left(limit), std::min(limit, lasts));
      const std::int64_t passes = pool.passes_left(static_cast<std::int64_t>((random.next() % 12)));
      pool.advance(passes);
      for (std::int64_t& each : tokens) each += passes;
    }
  }
}

}  // namespace
}  // namespace rehearse::tests
