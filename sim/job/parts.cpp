#include "sim/job/parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "config/data_dir.hpp"
#include "config/reference.hpp"
#include "config/yaml_text.hpp"

namespace rehearse::sim {
namespace {

using config::Node;

Part inline_part(const Node& field) {
  if (const auto name = field.find("name")) return {name->as_string(), field.without("name")};
  // A HuggingFace model is called after its folder.
  return {field.find("hf") ? "" : "inline", field};
}

std::string unknown(const PartKind& kind, const std::string& name) { return fmt::format("unknown {} {}", kind.what, config::shown(name)); }

bool is_path(const std::string& text) { return text.find('/') != std::string::npos || text.ends_with(".yaml"); }

Part named_part(const Node& field, const PartKind& kind, const Node& more) {
  const std::string name = field.as_string();
  if (more && more.find(name)) return {name, more.at(name)};
  if (is_path(name)) return {std::filesystem::path(name).stem().string(), config::load_referenced(field)};
  const std::string path = config::data_file(kind.folder, name);
  if (!path.empty()) return {name, Node::load_file(path)};
  std::vector<std::string> known = config::data_names(kind.folder);
  if (more) {
    for (std::string& key : more.keys()) known.push_back(std::move(key));
    std::ranges::sort(known);
    known.erase(std::unique(known.begin(), known.end()), known.end());
  }
  field.fail(unknown(kind, name), config::suggestion(name, known));
}

}  // namespace

Part find_part(const Node& field, const PartKind& kind, const Node& more) {
  if (field.is_map()) return inline_part(field);
  if (!field.is_scalar()) field.fail(fmt::format("{} must be a name, a path or a mapping", field.path()));
  return named_part(field, kind, more);
}

Part take_gpu(Part& cluster) {
  const Part gpu = find_part(cluster.node.at("gpu"), gpu_part);
  cluster.node.set("gpu", config::yaml_text(gpu.name));
  return gpu;
}

Node named(const Part& part) {
  Node node;
  node.set_child("name", Node::scalar(part.name, true));
  for (const std::string& key : part.node.keys()) node.set_child(key, part.node.at(key));
  return node;
}

Part ready_made(const PartKind& kind, const std::string& name) {
  const std::string path = config::data_file(kind.folder, name);
  if (path.empty()) throw config::InputError(unknown(kind, name), config::suggestion(name, config::data_names(kind.folder)));
  return {name, Node::load_file(path)};
}

}  // namespace rehearse::sim
