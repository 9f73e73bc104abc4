// The words by which files call the values of a choice.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/node.hpp"

namespace rehearse::config {

template <class Choice>
class Names {
 public:
  Names(std::initializer_list<std::pair<std::string_view, Choice>> all) : all_(all) {}

  // The choice that a scalar names; refuses other words, listing the known ones.
  [[nodiscard]] Choice read(const Node& node) const {
    const std::string text = node.as_choice(words());
    if (const auto found = find(text)) return *found;
    node.fail("unknown choice");
  }

  [[nodiscard]] std::string_view of(Choice wanted) const {
    for (const auto& [word, choice] : all_) {
      if (choice == wanted) return word;
    }
    return "";
  }

  [[nodiscard]] std::optional<Choice> find(std::string_view wanted) const {
    for (const auto& [word, choice] : all_) {
      if (word == wanted) return choice;
    }
    return std::nullopt;
  }

  [[nodiscard]] Names without(Choice left_out) const {
    Names some = *this;
    std::erase_if(some.all_, [&](const auto& one) { return one.second == left_out; });
    return some;
  }

  [[nodiscard]] std::vector<std::string> words() const {
    std::vector<std::string> words;
    for (const auto& [word, choice] : all_) words.emplace_back(word);
    return words;
  }

 private:
  std::vector<std::pair<std::string_view, Choice>> all_;
};

}  // namespace rehearse::config
