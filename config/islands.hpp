// Union-find: which of many things are connected.
#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

namespace rehearse::config {

class Islands {
 public:
  explicit Islands(std::size_t count = 0) : to_(count) { std::iota(to_.begin(), to_.end(), 0U); }
  [[nodiscard]] std::size_t size() const { return to_.size(); }
  void join(std::uint32_t a, std::uint32_t b) { to_[of(a)] = of(b); }
  // One of its island, the same for all of them until the next join.
  [[nodiscard]] std::uint32_t of(std::uint32_t i) {
    while (to_[i] != i) i = to_[i] = to_[to_[i]];
    return i;
  }

 private:
  std::vector<std::uint32_t> to_;
};

}  // namespace rehearse::config
