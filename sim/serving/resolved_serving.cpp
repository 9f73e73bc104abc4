#include "sim/serving/resolved_serving.hpp"

#include <string_view>
#include <utility>

#include "sim/job/parts.hpp"
#include "sim/serving/request_trace.hpp"

namespace rehearse::sim {
namespace {

using config::Node;

Node resolved_pools(const Node& pools) {
  Node out;
  for (const std::string& name : pools.keys()) {
    Node pool = pools.at(name);
    if (const auto software = pool.find("software")) pool.set_child("software", named(find_part(*software, software_part)));
    if (const auto draft = pool.find_path("speculative.draft")) {
      Node speculative = pool.at("speculative");
      speculative.set_child("draft", named(find_part(*draft, model_part)));
      pool.set_child("speculative", speculative);
    }
    out.set_child(name, pool);
  }
  return out;
}

Node resolved_load(Node load) {
  for (const auto& [key, form] : {std::pair{"arrivals", "trace"}, {"input", "from"}, {"output", "from"}}) {
    const auto given = load.find(key);
    const auto file = given && given->is_map() ? given->find(form) : std::nullopt;
    if (!file || (file->as_string() == "trace" && std::string_view(key) != "arrivals")) continue;
    Node law = *given;
    law.set_child(form, Node::scalar(settled_requests(*file), true));
    load.set_child(key, law);
  }
  return load;
}

}  // namespace

Node resolved_serving(Node serving) {
  serving.set_child("pools", resolved_pools(serving.at("pools")));
  serving.set_child("load", resolved_load(serving.at("load")));
  return serving;
}

}  // namespace rehearse::sim
