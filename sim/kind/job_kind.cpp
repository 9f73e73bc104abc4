#include "sim/kind/job_kind.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "config/tree.hpp"
#include "sim/job/job.hpp"
#include "sim/job/job_document.hpp"
#include "sim/job/job_keys.hpp"
#include "sim/job/open_job.hpp"

namespace rehearse::sim {
namespace {

std::string text_of(const JobRequest& request) {
  if (request.text) return *request.text;
  const std::string file = job_file(request.path);
  return file.empty() ? "" : config::read_file_text(file);
}

// Whether a line begins with what is no key of a training job.
bool has_other_keys(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at), key = line.substr(0, line.find(':'));
    if (!key.empty() && key.front() >= 'a' && key.front() <= 'z' && job_keys().find(key) == nullptr) return true;
    at = end + 1;
  }
  return false;
}

// Cheap: most jobs are training jobs, and reading one twice would cost as much as predicting it.
bool may_be_of_a_kind(const std::string& text) {
  const auto is_named = [&](const std::string& name) { return text.find(name) != std::string::npos; };
  return std::ranges::any_of(JobKindRegistry::names(), is_named) || has_other_keys(text);
}

// A section whose name is nearer to a kind's than to any key of training jobs.
void refuse_misspelt_section(const config::Node& document) {
  for (const std::string& key : document.keys()) {
    if (job_keys().find(key) != nullptr) continue;
    const std::vector<std::string> kinds = JobKindRegistry::names();
    std::vector<std::string> words = config::names_of(job_shape().keys);
    words.insert(words.end(), kinds.begin(), kinds.end());
    const std::string meant = config::nearest(key, words);
    if (std::ranges::find(kinds, meant) != kinds.end())
      document.at(key).fail_at_key("unknown key " + config::shown(key), fmt::format("did you mean '{}'?", meant));
  }
}

}  // namespace

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
    if (!section.empty()) found->fail_at_key(fmt::format("a job has one of the sections '{}' and '{}', not both", section, name));
    section = name;
  }
  if (section.empty()) refuse_misspelt_section(document);
  return section;
}

std::string kind_of(const JobRequest& request) {
  if (!may_be_of_a_kind(text_of(request))) return "";
  return kind_of(given_document({.path = request.path, .sets = {}, .seed = {}, .faults = {}, .text = request.text}));
}

const JobKind& kind_with_answer(const std::string& kind, const std::string& command) {
  const JobKind& found = JobKindRegistry::get(kind);
  std::vector<std::string> known;
  for (const auto& [name, options] : found.commands()) known.push_back(name);
  if (std::ranges::find(known, command) != known.end()) return found;
  throw config::InputError(fmt::format("{} has no answer for jobs with the section '{}'", command, kind),
                           fmt::format("what does: {}", fmt::join(known, ", ")));
}

KindRequest kind_request(const JobRequest& request) {
  return {.name = name_of(request),
          .document = given_document({.path = request.path, .sets = request.sets, .seed = {}, .faults = {}, .text = request.text}),
          .seed = request.seed,
          .options = {},
          .progress = [](double) {}};
}

}  // namespace rehearse::sim
