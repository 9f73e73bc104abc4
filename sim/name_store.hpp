#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>

namespace rehearse::sim {

// Names that views point into. It moves, and the views stay good; it is not copied, since those of a copy would point into the original.
class NameStore {
 public:
  NameStore() = default;
  NameStore(NameStore&&) = default;
  NameStore& operator=(NameStore&&) = default;
  NameStore(const NameStore&) = delete;
  NameStore& operator=(const NameStore&) = delete;
  ~NameStore() = default;

  std::string_view add(std::string_view name) { return names_.emplace_back(name); }
  [[nodiscard]] std::string_view operator[](std::size_t i) const { return names_[i]; }
  [[nodiscard]] auto begin() const { return names_.begin(); }
  [[nodiscard]] auto end() const { return names_.end(); }

 private:
  std::deque<std::string> names_;
};

}  // namespace rehearse::sim
