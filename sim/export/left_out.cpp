#include "sim/export/left_out.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <system_error>

#include "config/data_dir.hpp"
#include "sim/import/finish.hpp"
#include "sim/import/importer.hpp"
#include "sim/job/parts.hpp"

namespace rehearse::sim {
namespace {

using config::Node;
using Leaves = std::map<std::string, std::string>;

// A file without a name, since importers read files.
class TextInMemory {
 public:
  explicit TextInMemory(const std::string& text) : file_(memfd_create("rehearse-export", MFD_CLOEXEC)) {
    std::size_t done = 0;
    while (file_ >= 0 && done < text.size()) {
      const ssize_t wrote = ::write(file_, text.data() + done, text.size() - done);
      if (wrote <= 0) break;
      done += static_cast<std::size_t>(wrote);
    }
    if (file_ < 0 || done < text.size()) throw std::system_error(errno, std::generic_category(), "a file in memory");
  }
  TextInMemory(const TextInMemory&) = delete;
  TextInMemory& operator=(const TextInMemory&) = delete;
  ~TextInMemory() { ::close(file_); }
  [[nodiscard]] std::string path() const { return "/proc/self/fd/" + std::to_string(file_); }

 private:
  int file_;
};

// As --set reads it again: in flow style, with quotes around all that is more than a word.
std::string in_flow_style(const Node& node) {
  constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.+-/ ";
  std::string text;
  if (node.is_map()) {
    for (const std::string& key : node.keys()) text += (text.empty() ? "" : ", ") + key + ": " + in_flow_style(node.at(key));
    return '{' + text + '}';
  }
  if (node.is_sequence()) {
    for (const Node& item : node.items()) text += (text.empty() ? "" : ", ") + in_flow_style(item);
    return '[' + text + ']';
  }
  if (!node.is_scalar()) return "null";
  std::string word = node.as_string();
  const bool bare = !word.empty() && word.find_first_not_of(plain) == std::string::npos && word.front() != ' ' && word.front() != '-' &&
                    word.back() != ' ';
  if (bare) return word;
  for (const char c : word) text += c == '\'' ? "''" : std::string(1, c);
  return '\'' + text + '\'';
}

void add_leaves(const Node& node, const std::string& path, Leaves& leaves) {
  if (!node.is_map()) {
    leaves[path] = in_flow_style(node);
    return;
  }
  for (const std::string& key : node.keys()) add_leaves(node.at(key), path.empty() ? key : path + '.' + key, leaves);
}

bool below(std::string_view path, std::string_view part) { return path.starts_with(part) && path.substr(part.size()).starts_with('.'); }

// What something is called does not matter.
Leaves leaves_of(const Node& document) {
  Leaves leaves;
  add_leaves(document, "", leaves);
  for (const char* name : {"name", "model.name", "cluster.name", "cluster.gpu.name", "software.name"}) leaves.erase(name);
  return leaves;
}

// Clusters and stacks are given as a whole: by their name where they are ready-made.
std::string whole_part(const Job& job, const PartKind& kind) {
  const auto given = job.given.find(kind.what);
  if (given && given->is_scalar() && !config::data_file(kind.folder, given->as_string()).empty()) return given->as_string();
  if (!given && kind.what == software_part.what) return default_software(job.system.gpu.vendor);
  return in_flow_style(*job.resolved.document().find(kind.what));
}

class Comparison {
 public:
  Comparison(const Job& job, const Node& imported) : job_(job), imported_(imported), expected_(leaves_of(job.resolved.document())) {}

  // The key that has to be given for a leaf to come out as in the job, with its value; "" where there is no such value.
  [[nodiscard]] LeftOut setting_for(const std::string& leaf) const {
    for (const PartKind& part : {cluster_part, software_part}) {
      if (leaf == part.what || below(leaf, part.what)) return {std::string(part.what), whole_part(job_, part)};
    }
    // A section that the file gives in a word ("precision: bf16") is given anew as a whole.
    const std::string section_name = leaf.substr(0, leaf.find('.'));
    const auto word = imported_.find(section_name);
    if (section_name != leaf && word && !word->is_map()) {
      return {section_name, in_flow_style(job_.resolved.document().at(section_name))};
    }
    const auto value = expected_.find(leaf);
    if (value != expected_.end()) return {leaf, value->second};
    const auto section = job_.resolved.document().find_path(leaf);  // "model", of which the leaves are below
    if (section) return {leaf, in_flow_style(*section)};
    // What the job has not is taken back with the section that has it.
    const auto whole = job_.resolved.document().find(section_name);
    return whole && whole->is_map() ? LeftOut{section_name, in_flow_style(*whole)} : LeftOut{leaf, ""};
  }

  [[nodiscard]] std::vector<std::string> different(const Node& document) const {
    const Leaves found = leaves_of(document);
    std::vector<std::string> keys;
    for (const auto& [key, value] : expected_) {
      const auto other = found.find(key);
      if (other == found.end() || other->second != value) keys.push_back(key);
    }
    for (const auto& [key, value] : found) {
      if (!expected_.contains(key)) keys.push_back(key);
    }
    return keys;
  }

 private:
  const Job& job_;
  Node imported_;
  Leaves expected_;
};

std::vector<std::pair<std::string, std::string>> settings_of(const std::vector<LeftOut>& left_out) {
  std::vector<std::pair<std::string, std::string>> all;
  for (const LeftOut& each : left_out) all.emplace_back(each.key, each.value);
  return all;
}

// A setting for every difference; whether there was a new one.
bool settle(const Comparison& comparison, const std::vector<std::string>& keys, ReadBack& result) {
  bool more = false;
  for (const std::string& key : keys) {
    LeftOut setting = comparison.setting_for(key);
    const bool known = std::ranges::any_of(result.left_out, [&](const LeftOut& each) { return each.key == setting.key; });
    if (known || setting.value.empty()) continue;
    result.left_out.push_back(std::move(setting));
    more = true;
  }
  return more;
}

// The imported job, resolved. Where the file's plan is none that we simulate (virtual stages that do not divide the layers), it is the
// job's.
Node document_with(const Draft& draft, ReadBack& result, const Job& job) {
  const auto read = [&] { return read_job(finish_import(draft, settings_of(result.left_out), job.name).document, job.name); };
  const auto has_plan = [](const LeftOut& each) { return each.key == "parallel"; };
  try {
    return read().resolved.document();
  } catch (const config::InputError&) {
    if (std::ranges::any_of(result.left_out, has_plan)) throw;
    result.left_out.push_back({"parallel", in_flow_style(job.resolved.document().at("parallel"))});
    return read().resolved.document();
  }
}

ReadBack model_back(const Job& job, const Draft& draft) {
  ReadBack result;
  const auto model = job.resolved.document().find("model");
  Leaves expected, found;
  add_leaves(*model, "model", expected);
  add_leaves(draft.document(), "model", found);
  for (const auto& [key, value] : expected) {
    if (key != "model.name" && (!found.contains(key) || found[key] != value)) result.left_out.push_back({key, value});
  }
  for (const auto& [key, value] : found) {
    if (key != "model.name" && !expected.contains(key)) result.otherwise.push_back(key);
  }
  return result;
}

}  // namespace

ReadBack read_back(const Job& job, const std::string& format, const std::string& text) {
  const TextInMemory file(text);
  const Draft draft = ImporterRegistry::get(format).read({file.path(), ""});
  if (draft.kind() == Draft::Kind::model) return model_back(job, draft);
  const Comparison comparison(job, draft.document());
  ReadBack result;
  std::vector<std::string> open;
  for (const Need& need : draft.needs) {
    if (!draft.document().find_path(need.key)) open.push_back(need.key);
  }
  while (settle(comparison, open, result)) open = comparison.different(document_with(draft, result, job));
  result.otherwise = std::move(open);
  return result;
}

}  // namespace rehearse::sim
