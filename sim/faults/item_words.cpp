#include "sim/faults/item_words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <sstream>
#include <utility>

#include "sim/faults/nanoseconds.hpp"

namespace rehearse::sim {
namespace {

constexpr double largest_named_slowdown = 1e6;

bool begins_a_time(const std::string& word) { return word == "from" || word == "for" || word == "every"; }

}  // namespace

config::Shape item_shape() {
  return {.kind = config::Shape::Kind::text,
          .choices = {"gpu", "nic", "node", "rail", "spine", "job", "gpus", "nics", "nodes", "scenario"}};
}

const char* const ItemWords::step_examples =
    "for example 'gpu 5 at 3.2 s', 'gpu 5 slow 1.3', 'nic 5 slow 2', 'node 1 at 2 s', 'rail 0 down from 1 s for 20 ms', 'spine lost', "
    "'gpus 1 % slow 1.1 to 1.5', 'scenario at 36 h'";

ItemWords::ItemWords(const config::Node& node, std::string text, const char* examples)
    : node_(node), examples_(examples), text_(std::move(text)) {
  std::istringstream in(text_);
  words_.assign(std::istream_iterator<std::string>(in), {});
}

void ItemWords::refuse(const std::string& why) const { node_.fail(why, examples_); }

bool ItemWords::take(std::string_view word) {
  const bool found = more() && words_[at_] == word;
  at_ += found ? 1 : 0;
  return found;
}

std::string ItemWords::next() {
  if (!more()) refuse(fmt::format("'{}' is not complete", text_));
  return words_[at_++];
}

void ItemWords::expect_end() const {
  if (more()) refuse(fmt::format("'{}' is too much", words_[at_]));
}

int ItemWords::whole_number() {
  const std::string word = next();
  const auto number = number_of<int>(word);
  if (!number) refuse(fmt::format("'{}' is not a whole number", word));
  return *number;
}

double ItemWords::slowdown() {
  const std::string word = next();
  const auto value = number_of<double>(word);
  if (!value || !(*value >= 1) || *value > largest_named_slowdown)
    refuse(fmt::format("'{}' is not how many times as long it takes, from 1 on", word));
  return *value;
}

std::string ItemWords::time_text() {
  std::string text = next();
  while (more() && !begins_a_time(words_[at_])) text.append(1, ' ').append(next());
  return text;
}

double ItemWords::any_time_s() {
  const std::string text = time_text();
  std::string why;
  const auto seconds = config::parse_quantity(text, config::Dimension::time, why);
  if (!seconds) refuse(fmt::format("'{}' is not a time: {}", text, why));
  if (*seconds < 0) node_.fail(fmt::format("'{}' is before the start", text));
  if (*seconds > longest_job_s) node_.fail("longer than 100 years");
  return *seconds;
}

double ItemWords::time_s(std::string_view what) {
  const double seconds = any_time_s();
  if (seconds > seconds_per_day) node_.fail(fmt::format("'{}' in '{}': no step is longer than a day", what, text_));
  return seconds;
}

std::string ItemWords::rest() {
  std::string all;
  while (more()) all.append(1, ' ').append(next());
  return all;
}

}  // namespace rehearse::sim
