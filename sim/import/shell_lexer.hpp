// A shell script cut into words and operators, nothing expanded.
#pragma once

#include <string>
#include <vector>

#include "sim/import/shell.hpp"

namespace rehearse::sim {

struct ShellToken {
  enum class Kind { word, array, op };  // array: NAME=( ... ) or NAME+=( ... )
  Kind kind = Kind::op;
  std::string text;  // a word as written; an operator (";", "&&", "||", "|", "&", "(", ")", newline is ";"); an array's name
  int line = 0, column = 0;
  bool appends = false;             // array
  std::vector<ShellWord> elements;  // array, as written
};

// `directives` gets the lines that begin with #SBATCH, #PBS or #BSUB.
[[nodiscard]] std::vector<ShellToken> cut_shell(const TextFile& file, std::vector<ShellWord>& directives);

}  // namespace rehearse::sim
