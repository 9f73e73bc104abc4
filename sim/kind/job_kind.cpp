#include "sim/kind/job_kind.hpp"

namespace rehearse::sim {

const std::string* KindRequest::option(const std::string& option_name) const {
  const auto found = options.find(option_name);
  return found == options.end() || found->second.empty() ? nullptr : &found->second.back();
}

JobKind::Measures JobKind::predicted_measures(const std::string&, const config::Node&, const config::Node&) const {
  throw config::InputError("no formula is held against measured cases of this kind of job");
}

JobKind::Measures JobKind::simulated_measures(const std::string&, const config::Node&, const config::Node&) const {
  throw config::InputError("no simulation is held against measured cases of this kind of job");
}

std::string kind_of(const config::Node& document) {
  std::string section;
  if (!document.is_map()) return section;
  for (const std::string& name : JobKindRegistry::names()) {
    const auto found = document.find(name);
    if (!found) continue;
    if (!section.empty()) found->fail_at_key("a job has one of the sections '" + section + "' and '" + name + "', not both");
    section = name;
  }
  return section;
}

}  // namespace rehearse::sim
