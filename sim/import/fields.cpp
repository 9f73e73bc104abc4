#include "sim/import/fields.hpp"

#include <algorithm>

#include "sim/import/interpolation.hpp"

namespace rehearse::sim {

using config::Node;

void require_mappings(const Node& root, std::string_view path) {
  for (std::size_t dot = path.find('.'); dot != std::string_view::npos; dot = path.find('.', dot + 1)) {
    const auto above = root.find_path(path.substr(0, dot));
    if (!above || above->is_null()) return;
    static_cast<void>(above->keys());  // refuses what has none
  }
}

std::optional<Node> Fields::take(std::string_view path) {
  seen_.emplace(path);
  if (root_.is_map()) require_mappings(root_, path);
  auto found = root_.is_map() ? root_.find_path(path) : std::nullopt;
  if (found && how_ == Interpolates::yes) found = Interpolation(root_).resolved(*found);
  return found && !found->is_null() ? found : std::nullopt;
}

std::optional<Node> Fields::take_any(std::initializer_list<std::string_view> paths) {
  std::optional<Node> first;
  for (const std::string_view path : paths) {
    auto found = take(path);
    if (!first) first = std::move(found);
  }
  return first;
}

std::int64_t Fields::whole(std::string_view path, std::int64_t otherwise, std::int64_t low, std::int64_t high) {
  const auto found = take(path);
  return found ? found->as_int(low, high) : otherwise;
}

bool Fields::truth(std::string_view path, bool otherwise) {
  const auto found = take(path);
  if (!found) return otherwise;
  const std::string text = found->is_scalar() ? found->as_string() : "";
  return text == "True" || (text != "False" && found->as_bool());
}

std::string Fields::word(std::string_view path, std::string_view otherwise) {
  const auto found = take(path);
  return found ? found->as_string() : std::string(otherwise);
}

namespace {

void leaves(const Node& node, const std::string& path, std::vector<std::string>& out) {
  if (!node.is_map() || node.keys().empty()) return out.push_back(path);
  for (const std::string& key : node.keys()) leaves(node.at(key), path.empty() ? key : path + "." + key, out);
}

}  // namespace

void Fields::report(Draft& draft, const std::vector<std::string_view>& without_effect) const {
  std::vector<std::string> all;
  leaves(root_, "", all);
  for (const std::string& path : all) {
    const bool seen = std::ranges::any_of(seen_, [&](const std::string& taken) { return path == taken || path.starts_with(taken + "."); });
    if (seen) continue;
    const bool quiet = std::ranges::any_of(without_effect, [&](std::string_view beginning) { return path.starts_with(beginning); });
    quiet ? draft.ignore(path) : draft.puzzle(path);
  }
}

}  // namespace rehearse::sim
