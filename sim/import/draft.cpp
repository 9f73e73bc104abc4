#include "sim/import/draft.hpp"

#include "sim/job/override.hpp"

namespace rehearse::sim {
namespace {

using config::Node;

void place(Node& map, std::string_view path, const Node& value) {
  const std::size_t dot = path.find('.');
  const std::string_view key = path.substr(0, dot);
  if (dot == std::string_view::npos) return map.set_child(key, value);
  Node child = map ? map.find(key).value_or(Node()) : Node();
  place(child, path.substr(dot + 1), value);
  map.set_child(key, child);
}

}  // namespace

void Draft::set(std::string_view key, const Node& value) { place(document_, key, value); }
void Draft::set(std::string_view key, std::string_view text) { set(key, Node::scalar(std::string(text))); }
void Draft::set(std::string_view key, std::int64_t number) { set(key, Node::scalar(std::to_string(number))); }

void Draft::override_with(std::string_view key, std::string_view value) {
  if (kind_ == Kind::job) return set_in_job(document_, key, value);
  document_.set(key, value);
}

Node in_order(const Node& document) {
  Node out;
  for (const char* key : {"name", "model", "cluster", "gpus", "parallel", "software", "batch", "precision", "attention", "schedule",
                          "recompute", "lora", "optimizer", "offload", "overlap", "moe", "cuda_graphs"}) {
    if (const auto found = document.find(key)) out.set_child(key, *found);
  }
  for (const std::string& key : document.keys()) {
    if (!out || !out.find(key)) out.set_child(key, document.at(key));
  }
  return out;
}

}  // namespace rehearse::sim
