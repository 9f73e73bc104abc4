// What an importer makes of another program's file: a document of ours, and a word on everything in the file that is not in it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/node.hpp"

namespace rehearse::sim {

// A key that the file cannot know and somebody has to give.
struct Need {
  std::string key;  // of the document: "model.vocab"
  std::string why;  // "the tokenizer decides"
};

class Draft {
 public:
  enum class Kind { job, model, cluster };

  explicit Draft(Kind kind) : kind_(kind) {}

  // Sets a key by its dotted path. A node keeps its place in the imported file, so that whatever refuses it later points there.
  void set(std::string_view key, const config::Node& value);
  void set(std::string_view key, std::string_view text);
  void set(std::string_view key, std::int64_t number);

  void infer(std::string what) { inferred.push_back(std::move(what)); }         // is not in the file as such
  void ignore(std::string what) { without_effect.push_back(std::move(what)); }  // has none on time or memory
  void puzzle(std::string what) { not_understood.push_back(std::move(what)); }  // left out, may matter
  void need(std::string key, std::string why) { needs.push_back({std::move(key), std::move(why)}); }

  [[nodiscard]] Kind kind() const { return kind_; }
  [[nodiscard]] const config::Node& document() const { return document_; }
  // `--set`: as with a job.
  void override_with(std::string_view key, std::string_view value);

  std::vector<std::string> inferred, without_effect, not_understood;
  std::vector<Need> needs;

 private:
  Kind kind_;
  config::Node document_;
};

// The document with its sections in the order of the job format.
[[nodiscard]] config::Node in_order(const config::Node& document);

}  // namespace rehearse::sim
