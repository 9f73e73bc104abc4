// Errors caused by what the user wrote. Everything that refuses input throws InputError; main turns it into exit code 2.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace rehearse::config {

// A place in an input file. line and column count from 1; 0 means "unknown".
struct Position {
  std::string file;
  int line = 0;
  int column = 0;
};

// what() is the whole message as shown to the user:
//
//   job.yaml:7:3: error: unknown key 'paralel'
//       7 |   paralel: {tp: 8}
//         |   ^
//   did you mean 'parallel'?
//
// The source line and the hint are left out when they are empty.
class InputError : public std::runtime_error {
 public:
  InputError(const Position& where, std::string_view message, std::string_view source_line = {}, std::string_view hint = {});
  explicit InputError(std::string_view message, std::string_view hint = {});

  [[nodiscard]] const Position& where() const { return where_; }
  [[nodiscard]] const std::string& message() const { return message_; }
  [[nodiscard]] const std::string& hint() const { return hint_; }

 private:
  Position where_;
  std::string message_;
  std::string hint_;
};

// The text in quotes, as messages repeat it: cut after 60 bytes, control characters replaced.
[[nodiscard]] std::string shown(std::string_view text);

// The candidate nearest to `word` by Damerau-Levenshtein distance, or "" when none is near enough (distance > 1 + length/3).
[[nodiscard]] std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

// "did you mean 'x'? known: a, b, c" — the suggestion is left out when nothing is near. `instead`: what is more likely meant than that.
[[nodiscard]] std::string suggestion(std::string_view word, const std::vector<std::string>& candidates,
                                     const std::vector<std::string>& instead = {});

}  // namespace rehearse::config
