// The fields of a nested file, by dotted paths, with a note of which were looked at.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "config/node.hpp"
#include "sim/import/draft.hpp"

namespace rehearse::sim {

class Fields {
 public:
  enum class Interpolates { no, yes };  // ${...}, as OmegaConf does
  explicit Fields(config::Node root, Interpolates how = Interpolates::no) : root_(std::move(root)), how_(how) {}

  // Null counts as left out. Each marks the field as looked at.
  [[nodiscard]] std::optional<config::Node> take(std::string_view path);
  [[nodiscard]] std::optional<config::Node> take_any(std::initializer_list<std::string_view> paths);  // the first that is there; all marked
  [[nodiscard]] std::int64_t whole(std::string_view path, std::int64_t otherwise, std::int64_t low, std::int64_t high);
  [[nodiscard]] bool truth(std::string_view path, bool otherwise);
  [[nodiscard]] std::string word(std::string_view path, std::string_view otherwise);
  [[nodiscard]] const config::Node& root() const { return root_; }

  // What was not looked at: without effect where its path begins with one of these, else left out. A list is one field.
  void report(Draft& draft, const std::vector<std::string_view>& without_effect) const;

 private:
  config::Node root_;
  Interpolates how_;
  std::set<std::string, std::less<>> seen_;
};

// What a path goes through is a mapping, left out or null: in anything else a setting would be passed over. Throws InputError.
void require_mappings(const config::Node& root, std::string_view path);

// A TOML file as a tree with positions. Throws InputError.
[[nodiscard]] config::Node load_toml(const std::string& path);

}  // namespace rehearse::sim
