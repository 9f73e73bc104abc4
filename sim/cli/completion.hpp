// What can stand where the cursor is, for the shells: commands, options, ready-made names, formats, keys of --set and their values. All of
// it comes from the declared options: one whose description says "(rehearse list KIND)" takes the names of that list.
#pragma once

#include <CLI/App.hpp>
#include <string>
#include <vector>

namespace rehearse::cli {

inline constexpr std::string_view completion_query = "__complete";

struct Completion {
  std::string word, means;
};

// `words`: those behind the program's name, the last one as far as it is typed. Sorted as declared; each begins with the last word. Empty
// where a file belongs, or nothing is known.
[[nodiscard]] std::vector<Completion> completions(const CLI::App& app, const std::vector<std::string>& words);

// One per line, a tab before what it means.
[[nodiscard]] std::string completions_text(const CLI::App& app, const std::vector<std::string>& words);

}  // namespace rehearse::cli
