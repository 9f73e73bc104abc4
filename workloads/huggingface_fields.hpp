// The fields of a config.json, read under all the names that families give them.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "workloads/huggingface.hpp"
#include "workloads/model_limits.hpp"

namespace rehearse::workloads {

// Of a whole number.
struct CountBounds {
  std::int64_t low = 1, high = widest;
};

// config.json, with a note of which fields were looked at. A field of several names has the first that is there.
class HuggingfaceFields {
 public:
  using Spellings = std::initializer_list<std::string_view>;
  explicit HuggingfaceFields(config::Node json) : json_(std::move(json)) {}

  std::optional<config::Node> given(Spellings names) {
    std::optional<config::Node> first;
    for (const std::string_view name : names) {
      seen_.emplace(name);
      auto found = json_.find(name);
      if (!first && found && !found->is_null()) first = std::move(found);
    }
    return first;
  }
  std::optional<config::Node> given(std::string_view name) { return given({name}); }
  config::Node required(Spellings names) {
    const auto found = given(names);
    return found ? *found : json_.at(*names.begin());
  }
  int whole(Spellings names, const CountBounds& bounds = {}) { return static_cast<int>(required(names).as_int(bounds.low, bounds.high)); }
  int whole_or(Spellings names, int otherwise, const CountBounds& bounds = {}) {
    const auto found = given(names);
    return found ? static_cast<int>(found->as_int(bounds.low, bounds.high)) : otherwise;
  }
  bool truth_or(Spellings names, bool otherwise) {
    const auto found = given(names);
    return found ? found->as_bool() : otherwise;
  }
  [[nodiscard]] std::vector<std::string> unread() const {
    std::vector<std::string> out;
    for (const std::string& key : json_.keys()) {
      if (!seen_.contains(key)) out.push_back(key);
    }
    return out;
  }

 private:
  config::Node json_;
  std::set<std::string, std::less<>> seen_;
};

// What layers have in the place of attention, and which layers: a pattern of letters, every so many, or a list. In a file's pattern or list
// positions point at it.
void read_huggingface_mixer(HuggingfaceFields& fields, const HuggingfaceFamily& family, Model& model);

}  // namespace rehearse::workloads
