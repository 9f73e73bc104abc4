// Where the time of each pipeline stage goes: stacked bars, every method beside the others, and the means as a table.
#include <fmt/format.h>

#include <map>

#include "sim/report/page/chart.hpp"
#include "sim/report/page/step_results.hpp"

namespace rehearse::sim::page {
namespace {

constexpr std::size_t most_phase_bars = 96;

// The first rank of each stage.
std::map<int, const Json*> stages_of(const Input& input, const std::string& method) {
  std::map<int, const Json*> stages;
  for (const Json& rank : input.at(result_at(method) + "/ranks")) stages.try_emplace(rank.at("stage").get<int>(), &rank);
  return stages;
}

Bar bar_of(const Json& rank, const std::string& name) {
  Bar bar{name, {}};
  for (const auto& [phase, seconds] : rank.at("phases_s").items()) {
    bar.pieces.push_back({css_of_words(words_of_key(phase)), words_of_key(phase), seconds.get<double>()});
  }
  return bar;
}

std::vector<std::string> shown_methods(const Input& input) {
  std::vector<std::string> shown;
  for (const std::string& method : methods_of(input)) {
    if (method != "critical path") shown.push_back(method);
  }
  return shown.empty() ? methods_of(input) : shown;
}

std::string bars_of_stages(const Input& input) {
  std::vector<Bar> bars;
  double most = 0;
  const std::vector<std::string> methods = shown_methods(input);
  for (const auto& [stage, unused] : stages_of(input, methods.front())) {
    for (const std::string& method : methods) {
      const auto stages = stages_of(input, method);
      if (!stages.contains(stage) || bars.size() >= most_phase_bars) continue;
      bars.push_back(bar_of(*stages.at(stage), fmt::format("stage {}, {}", stage, method)));
      most = std::max(most, input.at(result_at(method) + "/step_s").get<double>());
    }
  }
  return stacked_bars("Phases of each pipeline stage", bars, most, [](double seconds) { return in_words(seconds, Unit::milliseconds); });
}

std::vector<std::string> phases_that_occur(const Input& input) {
  std::vector<std::string> phases;
  for (const auto& [phase, unused] : input.at(result_at(main_method(input)) + "/mean_phases_s").items()) {
    bool occurs = false;
    for (const std::string& method : methods_of(input)) {
      for (const Json& rank : input.at(result_at(method) + "/ranks")) occurs = occurs || rank.at("phases_s").at(phase).get<double>() > 0;
    }
    if (occurs) phases.push_back(phase);
  }
  return phases;
}

class Phases final : public Section {
 public:
  [[nodiscard]] int order() const override { return 20; }
  [[nodiscard]] std::string_view title() const override { return "Where the time goes"; }
  [[nodiscard]] bool applies(const Input& input) const override { return !methods_of(input).empty(); }
  [[nodiscard]] std::string html(const Input& input) const override {
    const std::vector<std::string> methods = methods_of(input);
    std::vector<Mark> marks;
    std::vector<Column> columns = {{"phase", true}};
    for (const std::string& method : methods) columns.push_back({method});
    columns.push_back({"share of the step"});
    std::vector<std::vector<std::string>> rows;
    const std::string main_at = result_at(main_method(input));
    for (const std::string& phase : phases_that_occur(input)) {
      marks.push_back({css_of_words(words_of_key(phase)), words_of_key(phase)});
      std::vector<std::string> row = {words_of_key(phase)};
      for (const std::string& method : methods)
        row.push_back(number(input.result, result_at(method) + "/mean_phases_s/" + phase, Unit::milliseconds));
      row.push_back(worked_out(input.at(main_at + "/mean_phases_s/" + phase).get<double>() / input.at(main_at + "/step_s").get<double>(),
                               Unit::percent));
      rows.push_back(std::move(row));
    }
    return legend(marks) + bars_of_stages(input) + table("Mean over all ranks", columns, rows);
  }
};

const SectionRegistry::Registration<Phases> phases_registration("phases");

}  // namespace
}  // namespace rehearse::sim::page
