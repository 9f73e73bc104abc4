#include "sim/job/parts.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <string>

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

// A ready-made part is named by job after job: its file is read once, and again when it has changed.
Node read_once(const std::string& path) {
  struct Known {
    timespec written;
    off_t size;
    Node node;
  };
  static std::mutex one_at_a_time;
  static std::map<std::string, Known> known;
  struct stat now {};
  if (::stat(path.c_str(), &now) != 0) return Node::load_file(path);
  const auto unchanged = [&](const Known& file) {
    return file.written.tv_sec == now.st_mtim.tv_sec && file.written.tv_nsec == now.st_mtim.tv_nsec && file.size == now.st_size;
  };
  {
    const std::scoped_lock lock(one_at_a_time);
    const auto it = known.find(path);
    if (it != known.end() && unchanged(it->second)) return it->second.node;
  }
  Node node = Node::load_file(path);
  const std::scoped_lock lock(one_at_a_time);
  known.insert_or_assign(path, Known{now.st_mtim, now.st_size, node});
  return node;
}

Part named_part(const Node& field, const PartKind& kind, const Node& more) {
  const std::string name = field.as_string();
  if (more && more.find(name)) return {name, more.at(name)};
  if (is_path(name)) return {std::filesystem::path(name).stem().string(), config::load_referenced(field)};
  const std::string path = config::data_file(kind.folder, name);
  if (!path.empty()) return {name, read_once(path)};
  std::vector<std::string> known = config::data_names(kind.folder);
  if (more) {
    for (std::string& key : more.keys()) known.push_back(std::move(key));
    std::ranges::sort(known);
    known.erase(std::unique(known.begin(), known.end()), known.end());
  }
  field.fail(unknown(kind, name), config::suggestion(name, known));
}

// Keys of `own` replace those of `base`, mappings key by key.
Node laid_over(Node base, const Node& own) {
  for (const std::string& key : own.keys()) {
    const Node value = own.at(key);
    const auto below = base.find(key);
    // Another model of an operator is not the old one with some of its parameters.
    const bool merged = below && below->is_map() && value.is_map() && !value.find("model");
    base.set_child(key, merged ? laid_over(*below, value) : value);
  }
  return base;
}

constexpr int most_ancestors = 8;

// The part with all that it has in common with the one that it names.
Part extended(Part part, const PartKind& kind, const Node& more, int generation) {
  if (!part.node.is_map()) return part;
  const auto other = part.node.find(like);
  if (!other) return part;
  if (generation > most_ancestors)
    other->fail(fmt::format("more than {} parts are each like the next", most_ancestors), "is one of them like itself?");
  if (!other->is_scalar()) other->fail("like must be a name or a path");
  const Part base = extended(named_part(*other, kind, more), kind, more, generation + 1);
  return {part.name == "inline" ? base.name + " (changed)" : part.name, laid_over(base.node, part.node.without(like))};
}

}  // namespace

Part find_part(const Node& field, const PartKind& kind, const Node& more) {
  if (field.is_map()) return extended(inline_part(field), kind, more, 0);
  if (!field.is_scalar()) field.fail(fmt::format("{} must be a name, a path or a mapping", field.path()));
  return extended(named_part(field, kind, more), kind, more, 0);
}

Part take_gpu(Part& cluster) {
  Part gpu = find_part(cluster.node.at("gpu"), gpu_part);
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
  return extended({name, read_once(path)}, kind, {}, 0);
}

}  // namespace rehearse::sim
