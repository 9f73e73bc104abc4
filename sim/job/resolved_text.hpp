// A job written out in full: every name replaced by what it names, every default filled in.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "config/node.hpp"

namespace rehearse::sim {

// Written when it is first asked for; copies share it. Safe on several threads.
class ResolvedText {
 public:
  ResolvedText();
  ResolvedText(std::string name, std::function<config::Node()> write);

  [[nodiscard]] const std::string& to_yaml() const;
  [[nodiscard]] const std::string& hash() const;  // FNV-1a of that text, 64 bit, as 16 hex digits
  // What it says at a dotted path, on one line; "" where it says nothing.
  [[nodiscard]] std::string value(std::string_view dotted_path) const;
  // The text as a document called by the job's name.
  [[nodiscard]] config::Node document() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace rehearse::sim
