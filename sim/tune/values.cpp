#include "sim/tune/values.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "config/shape.hpp"
#include "sim/job/job_keys.hpp"

namespace rehearse::sim {
namespace {

using config::Node;
using config::Shape;

constexpr std::int64_t most_values = 100'000;  // of one key

constexpr const char* ways = "a list, divisors, powers-of-two, {from: 1, to: 16}, both or all";

const Shape& shape_of(const std::string& key, const Node& node) {
  static const Shape job = job_shape();
  static const std::vector<config::Place> places = config::all_places(job);
  const auto place = std::ranges::find(places, key, &config::Place::path);
  if (place != places.end()) return place->parameter->shape;
  std::vector<std::string> known;
  for (const config::Place& one : places) known.push_back(one.path);
  const std::string near = config::nearest(key, known);
  node.fail_at_key("unknown key " + config::shown(key),
                   near.empty() ? "rehearse list keys has all of them" : "did you mean '" + near + "'?");
}

// What a degree has to divide, or cannot exceed; 0: nothing that is known.
std::int64_t whole_of(const std::string& key, const Job& open, int most_gpus) {
  const workloads::Model& model = open.workload.model;
  const int experts = model.moe ? model.moe->experts : 1;
  if (key == "parallel.tp" || key == "parallel.etp") return model.heads > 0 ? model.heads : model.ffn;
  if (key == "parallel.pp" || key == "parallel.vpp" || key == "recompute.full_layers") return model.layers;
  if (key == "parallel.cp") return open.workload.batch.sequence;
  if (key == "parallel.ep") return experts;
  if (key == "parallel.dp" || key == "optimizer.shard_group") return most_gpus;
  if (key == "batch.micro") return open.workload.batch.global;
  return 0;
}

class Values {
 public:
  Values(const std::string& key, const Node& given, const Job& open, int most_gpus)
      : key_(key), given_(given), shape_(shape_of(key, given)), open_(open), most_gpus_(most_gpus) {}

  std::vector<SpaceValue> all() {
    if (given_.is_sequence()) {
      for (const Node& item : given_.items()) add(item);
    } else {
      add(given_);
    }
    if (all_.empty()) given_.fail(fmt::format("{}: the list of values is empty", key_), ways);
    return std::move(all_);
  }

 private:
  void add(const Node& item) {
    if (item.is_map() && item.find("from")) return add_range(item);
    if (key_ == "recompute" && item.is_map() && says_auto(item)) return add_full_layers(item);
    const std::string word = item.is_scalar() ? item.as_string() : "";
    if (word == "divisors") return add_divisors(item);
    if (word == "powers-of-two") return add_powers(item);
    if (word == "both" || word == "all") return add_words(item, word);
    if (item.is_null()) item.fail(fmt::format("{}: a value is missing", key_), ways);
    add_value(config::one_line(item), item, true);
  }

  void add_value(std::string text, const Node& node, bool once = false) {
    if (std::ranges::find(all_, text, &SpaceValue::text) == all_.end()) {
      all_.push_back({std::move(text), node});
    } else if (once) {
      node.fail(fmt::format("{}: {} is given twice", key_, text));
    }
    if (static_cast<std::int64_t>(all_.size()) > most_values) node.fail(fmt::format("{}: more than {} values", key_, most_values));
  }
  void add_number(std::int64_t number, const Node& where) { add_value(std::to_string(number), where); }

  [[nodiscard]] std::int64_t whole(const Node& item, const std::string& word) const {
    if (shape_.kind != Shape::Kind::whole) item.fail(fmt::format("{} is no whole number, so it has no {}", key_, word), ways);
    const std::int64_t whole = whole_of(key_, open_, most_gpus_);
    if (whole == 0)
      item.fail(fmt::format("{} has nothing to divide: {} does not say which values", key_, word), "a list, or {from: 1, to: 16}");
    return whole;
  }
  [[nodiscard]] std::int64_t most(std::int64_t whole) const {
    return key_.starts_with("parallel.") ? std::min<std::int64_t>(whole, most_gpus_) : whole;
  }

  void add_divisors(const Node& item) {
    const std::int64_t number = whole(item, "divisors");
    for (std::int64_t d = 1; d <= most(number); ++d) {
      if (number % d == 0) add_number(d, item);
    }
  }

  void add_powers(const Node& item) {
    const std::int64_t number = most(whole(item, "powers-of-two"));
    for (std::int64_t d = 1; d <= number; d *= 2) add_number(d, item);
  }

  // {from: 1, to: 16}, and `by` or `times`.
  void add_range(const Node& item) {
    item.allow_keys({"from", "to", "by", "times"});
    if (shape_.kind != Shape::Kind::whole) item.fail(fmt::format("{} is no whole number, so it has no range", key_), ways);
    const auto low = static_cast<std::int64_t>(shape_.low), high = static_cast<std::int64_t>(shape_.high);
    const std::int64_t from = item.at("from").as_int(low, high), to = item.at("to").as_int(low, high);
    const auto by = item.find("by"), times = item.find("times");
    if (to < from) item.at("to").fail(fmt::format("{}: the range from {} to {} is empty", key_, from, to));
    if (by && times) times->fail(fmt::format("{}: a range goes by or times, not both", key_));
    const std::int64_t step = by ? by->as_int(1, high) : 1, factor = times ? times->as_int(2, high) : 1;
    if (times && from == 0) times->fail(fmt::format("{}: 0 times {} stays 0", key_, factor));
    for (std::int64_t value = from; value <= to; value = times ? value * factor : value + step) add_number(value, item);
  }

  static bool says_auto(const Node& item) {
    const auto layers = item.find("full_layers");
    return layers && layers->is_scalar() && layers->as_string() == "auto";
  }

  // As many layers as it takes: every number of them that a stage may have.
  void add_full_layers(const Node& item) {
    item.allow_keys({"full_layers"});
    for (int layers = 1; layers <= open_.workload.model.layers; ++layers)
      add_value(fmt::format("{{full_layers: {}}}", layers), Node::load_text(fmt::format("full_layers: {}", layers), "recompute"));
  }

  void add_words(const Node& item, const std::string& word) {
    const std::vector<std::string> words = config::words_of(shape_);
    if (words.empty() || (word == "both" && words.size() != 2)) {
      item.fail(fmt::format("{}: {} does not say which values: it is {}", key_, word, config::describe(shape_)), ways);
    }
    for (const std::string& one : words) add_value(one, item);
  }

  const std::string& key_;
  const Node& given_;
  const Shape& shape_;
  const Job& open_;
  int most_gpus_;
  std::vector<SpaceValue> all_;
};

// A value that was counted out, or one of several words, is read from its text; complaints point where it was asked for.
void settle_nodes(std::vector<SpaceValue>& values) {
  for (SpaceValue& value : values) {
    if (config::one_line(value.node) != value.text) value.node = Node::load_text(value.text, value.node.path());
  }
}

}  // namespace

std::vector<SpaceValue> values_of(const std::string& key, const Node& given, const Job& open, int most_gpus) {
  std::vector<SpaceValue> all = Values(key, given, open, most_gpus).all();
  settle_nodes(all);
  return all;
}

GivenValues parse_values(const std::string& option, const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == 0 || equals == std::string::npos || equals + 1 == text.size()) {
    throw config::InputError(fmt::format("{} takes key=value,value,..., not {}", option, config::shown(text)),
                             fmt::format("for example {} parallel.tp=1,2,4,8", option));
  }
  const std::string values = text.substr(equals + 1);
  int depth = 0;
  const bool several = std::ranges::any_of(values, [&](char c) {
    depth += static_cast<int>(c == '[' || c == '{') - static_cast<int>(c == ']' || c == '}');
    return c == ',' && depth == 0;
  });
  const std::string name = fmt::format("{} {}", option, text);
  return {text.substr(0, equals), Node::load_text(several ? "[" + values + "]" : values, name)};
}

}  // namespace rehearse::sim
