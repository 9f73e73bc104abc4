// Arguments of a program, collected and written one option a line.
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

namespace rehearse::sim {

class Arguments {
 public:
  void flag(std::string_view name) { lines_.push_back(fmt::format("--{}", name)); }
  void flag_if(bool on, std::string_view name) {
    if (on) flag(name);
  }
  template <class Value>
  void add(std::string_view name, const Value& value) {
    lines_.push_back(fmt::format("--{} {}", name, value));
  }
  [[nodiscard]] const std::vector<std::string>& lines() const { return lines_; }

 private:
  std::vector<std::string> lines_;
};

}  // namespace rehearse::sim
