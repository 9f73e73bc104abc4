#include "sim/job/section.hpp"

namespace rehearse::sim {

Section::Section(const config::Node& job, std::string_view key, const std::vector<std::string>& known) : node_(job.find(key)) {
  if (node_) node_->allow_keys(known);
}

std::optional<config::Node> Section::find(std::string_view key) const { return node_ ? node_->find(key) : std::nullopt; }

int Section::integer(std::string_view key, std::int64_t low, std::int64_t high, int otherwise) const {
  const auto found = find(key);
  return found ? static_cast<int>(found->as_int(low, high)) : otherwise;
}

bool Section::flag(std::string_view key, bool otherwise) const {
  const auto found = find(key);
  return found ? found->as_bool() : otherwise;
}

}  // namespace rehearse::sim
