// OmegaConf's ${a.b}, ${.sibling} and ${multiply:x, y}, as NeMo and llm-foundry write them.
#pragma once

#include <optional>
#include <string_view>

#include "config/node.hpp"

namespace rehearse::sim {

class Interpolation {
 public:
  explicit Interpolation(config::Node root) : root_(std::move(root)) {}

  // The value that a node stands for, which keeps the place of what it names; nothing where it is null or only the environment would tell.
  // Refuses what names nothing in the file, and circles.
  [[nodiscard]] std::optional<config::Node> resolved(const config::Node& value) const { return resolved(value, value.path(), 0); }
  // Of a path below `map`; nothing where there is none.
  [[nodiscard]] std::optional<config::Node> at(std::string_view path, const config::Node& map) const;

 private:
  [[nodiscard]] std::optional<config::Node> resolved(const config::Node& value, const std::string& place, int depth) const;
  [[nodiscard]] std::optional<config::Node> called(const config::Node& value, const std::string& inside, const std::string& place,
                                                   int depth) const;
  config::Node root_;
};

}  // namespace rehearse::sim
