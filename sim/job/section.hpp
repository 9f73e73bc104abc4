// One optional mapping of a job ("parallel", "overlap", ...): what it does not give keeps its default.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/node.hpp"

namespace rehearse::sim {

class Section {
 public:
  // Refuses keys other than the known ones.
  Section(const config::Node& job, std::string_view key, const std::vector<std::string>& known);

  [[nodiscard]] std::optional<config::Node> find(std::string_view key) const;
  [[nodiscard]] int integer(std::string_view key, std::int64_t low, std::int64_t high, int otherwise) const;
  [[nodiscard]] bool flag(std::string_view key, bool otherwise) const;

 private:
  std::optional<config::Node> node_;
};

}  // namespace rehearse::sim
