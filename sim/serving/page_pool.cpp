#include "sim/serving/page_pool.hpp"

#include <algorithm>

namespace rehearse::sim {

// A page each in every so many passes as a page has tokens, and of what is left of them those whose page is full by then.
std::int64_t PagePool::more_after(std::int64_t passes) const {
  const std::int64_t page = page_tokens(), rest = passes % page;
  std::int64_t more = growing_ * (passes / page);
  for (std::int64_t pass = 0, at = full_next(); pass < rest; ++pass, at = before(at)) more += starts_[static_cast<std::size_t>(at)];
  return more;
}

std::int64_t PagePool::passes_left(std::int64_t limit) const {
  if (growing_ == 0) return limit;
  const std::int64_t page = page_tokens(), rounds = std::max<std::int64_t>(0, available()) / growing_;
  if (rounds * page >= limit) return limit;
  std::int64_t left = available() - rounds * growing_, passes = rounds * page;
  for (std::int64_t at = full_next(); passes < limit; ++passes, at = before(at)) {
    left -= starts_[static_cast<std::size_t>(at)];
    if (left < 0) break;
  }
  return passes;
}

void PagePool::advance(std::int64_t passes) {
  used_ += more_after(passes);
  passes_ += passes;
}

}  // namespace rehearse::sim
