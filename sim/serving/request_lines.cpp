// Requests of JSON lines: {"timestamp": 27482, "input_length": 6955, "output_length": 52, "hash_ids": [46, 47]}, times in ms.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "config/input_error.hpp"
#include "sim/serving/request_reader.hpp"

namespace rehearse::sim {
namespace {

using Json = nlohmann::json;

constexpr std::size_t longest_line = 10'000'000, shown_of_a_line = 200;

const std::vector<std::string>& known_keys() {
  static const std::vector<std::string> keys{"timestamp", "input_length", "output_length", "hash_ids"};
  return keys;
}

class RequestLines final : public RequestReader {
 public:
  RequestLines(std::unique_ptr<std::istream> in, std::string name) : in_(std::move(in)), name_(std::move(name)) {}

  bool next(workloads::Request& request) override {
    do {
      if (!std::getline(*in_, line_)) return false;
      ++number_;
      if (line_.size() > longest_line) fail("this line is too long for a request", "a request is one object a line");
    } while (line_.find_first_not_of(" \t\r") == std::string::npos);
    Json object = parsed();
    for (const auto& [key, value] : object.items()) {
      if (std::ranges::find(known_keys(), key) == known_keys().end())
        fail_at(column_of(key), fmt::format("unknown key {}", config::shown(key)), config::suggestion(key, known_keys()));
    }
    request.arrival_s = number(object, "timestamp", 0, most_trace_seconds * 1e3) / 1e3;
    request.tokens = {tokens(object, "input_length"), tokens(object, "output_length")};
    object_ = std::move(object);
    has_hashes_ = has_hashes_ || object_.contains("hash_ids");
    return true;
  }
  [[nodiscard]] std::vector<std::uint64_t> hashes() const override {
    const auto found = object_.find("hash_ids");
    if (found == object_.end()) fail("this request has no hash_ids", "prefix_cache needs the hashes of all prompts");
    const bool whole = found->is_array() && std::ranges::all_of(*found, [](const Json& id) { return id.is_number_unsigned(); });
    if (!whole) fail_at(column_of("hash_ids"), "hash_ids must be a list of whole numbers");
    return found->get<std::vector<std::uint64_t>>();
  }
  void fail(std::string_view why, std::string_view hint) const override { fail_at(1, why, hint); }
  [[nodiscard]] bool has_hashes() const override { return has_hashes_; }

 private:
  [[nodiscard]] Json parsed() const {
    Json object;
    try {
      object = Json::parse(line_);
    } catch (const Json::parse_error& error) {
      fail_at(error.byte, "this is no JSON object",
              R"(a request is a line like {"timestamp": 27482, "input_length": 6955, "output_length": 52})");
    }
    if (!object.is_object()) fail("a request is a JSON object", R"({"timestamp": 27482, "input_length": 6955, "output_length": 52})");
    return object;
  }

  [[nodiscard]] double number(const Json& object, const std::string& key, double low, double high) const {
    const auto found = object.find(key);
    if (found == object.end())
      fail(fmt::format("key '{}' is missing", key), "a request has timestamp (ms), input_length and output_length");
    if (!found->is_number() || found->get<double>() < low || found->get<double>() > high)
      fail_at(column_of(key), fmt::format("{} must be a number from {:g} to {:g}, not {}", key, low, high, config::shown(found->dump())));
    return found->get<double>();
  }

  [[nodiscard]] int tokens(const Json& object, const std::string& key) const {
    const double value = number(object, key, 1, most_trace_tokens);
    if (value != std::floor(value)) fail_at(column_of(key), fmt::format("{} must be a whole number, not {}", key, value));
    return static_cast<int>(value);
  }

  [[nodiscard]] std::size_t column_of(const std::string& key) const {
    const std::size_t at = line_.find('"' + key + '"');
    return at == std::string::npos ? 1 : at + 1;
  }

  [[noreturn]] void fail_at(std::size_t column, std::string_view why, std::string_view hint = {}) const {
    const std::string_view shown = column <= shown_of_a_line ? std::string_view(line_).substr(0, shown_of_a_line) : std::string_view();
    throw config::InputError({name_, number_, static_cast<int>(std::max<std::size_t>(column, 1))}, why, shown, hint);
  }

  std::unique_ptr<std::istream> in_;
  std::string name_, line_;
  int number_ = 0;
  Json object_;  // the request that it is at
  bool has_hashes_ = false;
};

}  // namespace

std::unique_ptr<RequestReader> requests_of_lines(std::unique_ptr<std::istream> in, const std::string& name) {
  return std::make_unique<RequestLines>(std::move(in), name);
}

}  // namespace rehearse::sim
