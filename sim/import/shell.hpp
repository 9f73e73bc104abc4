// Shell scripts, read and never run: the assignments and commands that a script would get to, with what is plain in them worked out.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "sim/import/text_file.hpp"

namespace rehearse::sim {

// A word of a command after expansion, and where it was written.
struct ShellWord {
  std::string text;
  int line = 0, column = 0;
};

struct ShellCommand {
  std::vector<ShellWord> words;
};

struct ShellScript {
  std::vector<ShellCommand> commands;
  std::vector<ShellCommand> assigned;    // texts of several words that were assigned to variables
  std::vector<ShellCommand> directives;  // "#SBATCH" and the like, their words without the first
  std::vector<std::string> inferred;     // defaults taken, such as ${NODES:-8}
};

// Understood: comments, quotes, line continuations, variables, ${NAME:-default}, arrays with = and += and "${NAME[@]}", $((arithmetic)),
// if/elif/else/fi over tests of texts and numbers ([ ], [[ ]], test; || and &&). Of `for`, `while`, `case` and functions the insides are
// passed over; what the script's environment would decide is an empty text where `environment` does not say it: $1, $(command), unset
// variables. Words that are left unquoted fall apart at blanks. Refuses quotes, brackets and blocks that are left open; takes at most
// 100,000 words.
[[nodiscard]] ShellScript read_shell(const TextFile& file, const std::map<std::string, std::string>& environment);

}  // namespace rehearse::sim
