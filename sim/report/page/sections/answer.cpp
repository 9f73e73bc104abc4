// The answer in words: how long a step is, what it costs, and what holds it back.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "sim/report/page/page.hpp"
#include "sim/report/page/step_results.hpp"

namespace rehearse::sim::page {
namespace {

constexpr std::size_t most_named = 3;

// The phases beside computing that take most, by their share of the step.
std::string what_holds_it_back(const Input& input, const std::string& at, const std::string& method) {
  std::vector<std::pair<double, std::string>> others;
  for (const auto& [phase, seconds] : input.at(at + "/mean_phases_s").items()) {
    if (phase != "compute" && seconds.get<double>() > 0) others.emplace_back(seconds.get<double>(), phase);
  }
  std::ranges::stable_sort(others, std::ranges::greater(), [](const auto& other) { return other.first; });
  if (others.empty()) return fmt::format("<p>By {} every moment of the step is computation.</p>\n", method);
  const double step_s = input.at(at + "/step_s").get<double>();
  std::vector<std::string> named;
  for (std::size_t i = 0; i < std::min(most_named, others.size()); ++i) {
    const std::string seconds = number(input.result, at + "/mean_phases_s/" + others[i].second, Unit::milliseconds);
    named.push_back(fmt::format("{} {} ({})", words_of_key(others[i].second), seconds, in_words(others[i].first / step_s, Unit::percent)));
  }
  return fmt::format("<p>{} of the step are computation. What holds it back: {}.</p>\n",
                     number(input.result, at + "/mean_phases_s/compute", Unit::milliseconds), fmt::join(named, ", "));
}

std::string memory_in_words(const Input& input, const std::string& at) {
  if (!input.has(at + "/memory/ranks/0")) return "";
  const Json& ranks = input.at(at + "/memory/ranks");
  std::size_t fullest = 0;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (ranks[i].at("needed_bytes") > ranks[fullest].at("needed_bytes")) fullest = i;
  }
  const std::string rank = fmt::format("{}/memory/ranks/{}", at, fullest);
  const bool fits = input.at(at + "/memory/fits").get<bool>();
  return fmt::format("<p><span class=\"{}\">{}</span>: the fullest GPU, rank {} of stage {}, needs {} of {}.</p>\n", fits ? "good" : "bad",
                     fits ? "It fits" : "It does not fit", number(input.result, rank + "/rank", Unit::count),
                     number(input.result, rank + "/stage", Unit::count), number(input.result, rank + "/needed_bytes", Unit::bytes),
                     number(input.result, rank + "/capacity_bytes", Unit::bytes));
}

class Answer final : public Section {
 public:
  [[nodiscard]] int order() const override { return 10; }
  [[nodiscard]] std::string_view title() const override { return "The step"; }
  [[nodiscard]] bool applies(const Input& input) const override { return !methods_of(input).empty(); }
  [[nodiscard]] std::string html(const Input& input) const override {
    const std::string method = main_method(input);
    const std::string at = result_at(method);
    std::string out = "<dl class=\"facts\">\n";
    for (const std::string& each : methods_of(input))
      out += fact("step, " + escaped(each), number(input.result, result_at(each) + "/step_s", Unit::milliseconds));
    out += fact("tokens/s per GPU", number(input.result, at + "/tokens_per_s_per_gpu", Unit::count));
    out += fact("model FLOP/s per GPU", number(input.result, at + "/model_flops_per_gpu_per_s", Unit::rate));
    out += fact("MFU", number(input.result, at + "/mfu", Unit::percent));
    out += fact("bubble share", number(input.result, at + "/bubble_share", Unit::percent));
    out += "</dl>\n" + what_holds_it_back(input, at, method) + memory_in_words(input, at);
    if (input.has("/faults")) {
      for (const Json& fault : input.at("/faults")) out += fmt::format("<p>In this step: {}.</p>\n", escaped(fault.get<std::string>()));
    }
    return out;
  }
};

const SectionRegistry::Registration<Answer> answer_registration("step");

}  // namespace
}  // namespace rehearse::sim::page
