// Words of a shell script as a shell would expand them, without running anything.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "sim/import/text_file.hpp"

namespace rehearse::sim {

// What a script has assigned so far. A plain variable is a list of one.
class ShellVariables {
 public:
  explicit ShellVariables(const TextFile& file) : file_(file) {}

  void assign(const std::string& name, std::vector<std::string> values, bool appends);
  // The fields of a word: unquoted ones fall apart at blanks. Refuses at the line what grows beyond all measure.
  [[nodiscard]] std::vector<std::string> fields(const std::string& raw, int line);
  [[nodiscard]] std::string text(const std::string& raw, int line);  // as one, as in an assignment
  [[nodiscard]] const std::vector<std::string>& defaults_taken() const { return defaults_; }

 private:
  class Expansion;
  [[nodiscard]] std::vector<std::string> value(const std::string& name) const;
  void took_default(const std::string& name, const std::string& text);
  void spend(std::size_t bytes, int line);

  const TextFile& file_;
  std::map<std::string, std::vector<std::string>> values_;
  std::vector<std::string> defaults_;
  std::set<std::string> told_;
  std::size_t spent_ = 0;
};

// The value of a whole-number expression ("8*4"), "" where it is none. Names have been replaced.
[[nodiscard]] std::string shell_arithmetic(const std::string& expression);

}  // namespace rehearse::sim
