#include "workloads/layer_pattern.hpp"

#include <algorithm>
#include <string>

namespace rehearse::workloads {
namespace {

using config::Node;

constexpr std::size_t most_listed_layers = 10'000;

// list: '[' numbers ']' | list '*' number | list '+' list | '(' list ')'.
class Expression {
 public:
  explicit Expression(const Node& node) : node_(node), text_(node.as_string()) { std::erase(text_, ' '); }
  std::vector<bool> value() {
    std::vector<bool> ones = sum(0);
    if (at_ != text_.size() || ones.empty()) wrong();
    return ones;
  }

 private:
  [[noreturn]] void wrong() const { node_.fail("a number of layers or a list of ones and zeros", "for example 2, or ([0]*3+[1]*58)"); }
  bool next(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  std::size_t number() {
    std::size_t value = 0;
    const std::size_t start = at_;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9' && value <= most_listed_layers) {
      value = value * 10 + static_cast<std::size_t>(text_[at_++] - '0');
    }
    if (at_ == start || value > most_listed_layers) wrong();
    return value;
  }
  std::vector<bool> sum(int depth) {
    std::vector<bool> all = product(depth);
    while (next('+')) {
      const std::vector<bool> more = product(depth);
      all.insert(all.end(), more.begin(), more.end());
      if (all.size() > most_listed_layers) wrong();
    }
    return all;
  }
  std::vector<bool> product(int depth) {
    const std::vector<bool> once = factor(depth);
    std::vector<bool> all = once;
    while (next('*')) {
      const std::size_t times = number();
      const std::vector<bool> one = all;
      if (one.size() * times > most_listed_layers) wrong();
      all.clear();
      for (std::size_t i = 0; i < times; ++i) all.insert(all.end(), one.begin(), one.end());
    }
    return all;
  }
  std::vector<bool> factor(int depth) {
    if (depth > 20) wrong();
    if (next('(')) {
      std::vector<bool> all = sum(depth + 1);
      if (!next(')')) wrong();
      return all;
    }
    if (!next('[')) wrong();
    std::vector<bool> all;
    do {
      const std::size_t one = number();
      if (one > 1 || all.size() > most_listed_layers) wrong();
      all.push_back(one == 1);
    } while (next(','));
    if (!next(']')) wrong();
    return all;
  }
  const Node& node_;
  std::string text_;
  std::size_t at_ = 0;
};

}  // namespace

LayerPattern read_layer_pattern(const Node& value) {
  LayerPattern pattern;
  if (value.is_sequence()) {
    for (const Node& item : value.items()) pattern.ones.push_back(item.as_int(0, 1) == 1);
    if (pattern.ones.size() > most_listed_layers) value.fail("a list of at most 10,000 layers");
    return pattern;
  }
  const std::string text = value.as_string();
  if (text.find_first_of("[(") == std::string::npos) {
    pattern.every = static_cast<int>(value.as_int(1, most_listed_layers));
  } else {
    pattern.ones = Expression(value).value();
  }
  return pattern;
}

std::optional<Spaced> evenly_spaced(const std::vector<bool>& ones) {
  std::vector<int> at;
  for (std::size_t i = 0; i < ones.size(); ++i) {
    if (ones[i]) at.push_back(static_cast<int>(i));
  }
  if (at.empty()) return std::nullopt;
  const int layers = static_cast<int>(ones.size());
  const Spaced spaced{at.front(), at.size() > 1 ? at[1] - at[0] : layers};
  for (int layer = 0; layer < layers; ++layer) {
    if (ones[static_cast<std::size_t>(layer)] != (layer >= spaced.first && (layer - spaced.first) % spaced.every == 0)) return std::nullopt;
  }
  return spaced;
}

std::optional<int> full_every(const std::vector<bool>& ones) {
  const auto first = std::ranges::find(ones, false);
  if (first == ones.end()) return 0;
  const int every = static_cast<int>(first - ones.begin()) + 1;
  for (int layer = 0; layer < static_cast<int>(ones.size()); ++layer) {
    if (ones[static_cast<std::size_t>(layer)] == ((layer + 1) % every == 0)) return std::nullopt;
  }
  return every;
}

}  // namespace rehearse::workloads
