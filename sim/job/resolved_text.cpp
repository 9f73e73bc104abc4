#include "sim/job/resolved_text.hpp"

#include <mutex>

#include "config/fnv.hpp"

namespace rehearse::sim {
struct ResolvedText::State {
  std::string name;
  std::function<config::Node()> write;
  std::once_flag written;
  config::Node node;
  std::string text, hash;

  void ensure() {
    std::call_once(written, [&] {
      if (write) node = write();
      write = {};
      text = node.to_yaml();
      hash = config::fnv1a(text);
    });
  }
};

ResolvedText::ResolvedText() : ResolvedText("", {}) {}

ResolvedText::ResolvedText(std::string name, std::function<config::Node()> write) : state_(std::make_shared<State>()) {
  state_->name = std::move(name);
  state_->write = std::move(write);
}

std::string ResolvedText::value(std::string_view dotted_path) const {
  state_->ensure();
  const auto found = state_->node.find_path(dotted_path);
  return found ? one_line(*found) : "";
}

config::Node ResolvedText::document() const { return config::Node::load_text(to_yaml(), state_->name); }

const std::string& ResolvedText::to_yaml() const {
  state_->ensure();
  return state_->text;
}

const std::string& ResolvedText::hash() const {
  state_->ensure();
  return state_->hash;
}

}  // namespace rehearse::sim
