// Components found by name. One component, one .cpp: a static `Registration` object in that file adds it; the libraries are CMake OBJECT
// libraries so that the linker keeps such files.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/input_error.hpp"

namespace rehearse::config {

// Interface must have: static constexpr std::string_view kind;  // "schedule", used in messages
template <class Interface>
class Registry {
 public:
  // The component of that name. Throws InputError "unknown schedule 'x'" with the nearest and the list of known names.
  static const Interface& get(std::string_view name) {
    const auto& all = components();
    if (const auto it = all.find(name); it != all.end()) return *it->second;
    throw InputError("unknown " + std::string(Interface::kind) + " '" + std::string(name) + "'", suggestion(name, names()));
  }

  // All names, sorted.
  static std::vector<std::string> names() {
    std::vector<std::string> out;
    for (const auto& [name, component] : components()) out.push_back(name);
    return out;
  }

  template <class Component>
  struct Registration {
    explicit Registration(std::string name) { components().emplace(std::move(name), std::make_unique<Component>()); }
  };

 private:
  static std::map<std::string, std::unique_ptr<Interface>, std::less<>>& components() {
    static std::map<std::string, std::unique_ptr<Interface>, std::less<>> all;
    return all;
  }
};

}  // namespace rehearse::config
