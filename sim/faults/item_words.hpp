// One item of `simulation.faults`, word by word.
#pragma once

#include <charconv>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/node.hpp"
#include "config/shape.hpp"

namespace rehearse::sim {

// What the list is of: the words that read_step_faults() and draw_items() know an item by.
[[nodiscard]] config::Shape item_shape();

class ItemWords {
 public:
  // `node` is where complaints point; it must outlive the words.
  // `examples`: what a refusal shows.
  ItemWords(const config::Node& node, std::string text, const char* examples = step_examples);

  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] bool more() const { return at_ < words_.size(); }
  // Reads the next word if it is this one.
  bool take(std::string_view word);
  std::string next();                    // refuses where there is none
  int whole_number();                    // from 0 on
  double slowdown();                     // from 1 on
  double time_s(std::string_view what);  // up to the next of "from", "for" and "every", or to the end; at most a day
  double any_time_s();                   // the same without a limit
  std::string rest();                    // the words that are left, with a space before each
  void expect_end() const;

  [[noreturn]] void refuse(const std::string& why) const;                    // with examples
  [[noreturn]] void fail(const std::string& why) const { node_.fail(why); }  // without

 private:
  std::string time_text();

  static const char* const step_examples;
  const config::Node& node_;
  const char* examples_;
  std::string text_;
  std::vector<std::string> words_;
  std::size_t at_ = 0;
};

template <class Number>
[[nodiscard]] std::optional<Number> number_of(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

}  // namespace rehearse::sim
