// TOML by toml++.
#include <fmt/format.h>

#include <toml++/toml.h>

#include "config/tree_builder.hpp"
#include "sim/import/fields.hpp"
#include "sim/import/text_file.hpp"

namespace rehearse::sim {
namespace {

using config::TreeBuilder;

class Converter {
 public:
  explicit Converter(const TextFile& file) : file_(file), tree_(file.source, "") {}
  config::Node convert(const toml::table& table) {
    map(table, file_.at(1, 1));
    return config::NodeAccess::make(tree_.root());
  }

 private:
  [[nodiscard]] config::Position where(const toml::source_region& region) const {
    return file_.at(static_cast<int>(region.begin.line), static_cast<int>(region.begin.column));
  }

  void map(const toml::table& table, const config::Position& at) {
    tree_.open(TreeBuilder::Kind::map, at);
    for (const auto& [key, value] : table) {
      tree_.scalar(where(key.source()), key.str(), true);
      node(value);
    }
    tree_.close();
  }

  void node(const toml::node& value) {
    const config::Position at = where(value.source());
    if (const auto* table = value.as_table()) return map(*table, at);
    if (const auto* array = value.as_array()) {
      tree_.open(TreeBuilder::Kind::sequence, at);
      for (const toml::node& item : *array) node(item);
      return tree_.close();
    }
    if (const auto* text = value.as_string()) return tree_.scalar(at, text->get(), true);
    if (const auto* whole = value.as_integer()) return tree_.scalar(at, std::to_string(whole->get()), false);
    if (const auto* truth = value.as_boolean()) return tree_.scalar(at, truth->get() ? "true" : "false", false);
    if (const auto* number = value.as_floating_point()) return tree_.scalar(at, fmt::format("{}", number->get()), false);
    tree_.scalar(at, "a date or time", true);
  }

  const TextFile& file_;
  TreeBuilder tree_;
};

}  // namespace

config::Node load_toml(const std::string& path) {
  const TextFile file = load_text_file(path);
  try {
    return Converter(file).convert(toml::parse(std::string_view(file.text), std::string_view(path)));
  } catch (const toml::parse_error& problem) {
    const auto& at = problem.source().begin;
    file.fail(static_cast<int>(at.line), static_cast<int>(at.column), problem.description());
  }
}

}  // namespace rehearse::sim
