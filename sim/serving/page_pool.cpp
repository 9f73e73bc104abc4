#include "sim/serving/page_pool.hpp"

namespace rehearse::sim {

std::int64_t PagePool::more_after(std::int64_t passes) const {
  const auto page = static_cast<std::int64_t>(starts_.size());
  std::int64_t more = 0;
  for (std::int64_t i = 0; i < page; ++i) {
    const std::int64_t count = starts_[static_cast<std::size_t>(i)];
    if (count > 0) more += count * (((i + passes_) % page + passes) / page);
  }
  return more;
}

std::int64_t PagePool::passes_left(std::int64_t limit) const {
  if (more_after(limit) <= available()) return limit;
  std::int64_t low = 0, high = limit;  // low lasts, high does not
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (more_after(middle) <= available() ? low : high) = middle;
  }
  return low;
}

void PagePool::advance(std::int64_t passes) {
  used_ += more_after(passes);
  passes_ += passes;
}

}  // namespace rehearse::sim
