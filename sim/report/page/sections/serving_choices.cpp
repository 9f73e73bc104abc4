// What each choice of a deployment is worth: the table of `explain` for a job that serves.
#include <fmt/format.h>

#include "sim/report/page/page.hpp"

namespace rehearse::sim::page {
namespace {

class ServingChoices final : public Section {
 public:
  [[nodiscard]] int order() const override { return 15; }
  [[nodiscard]] std::string_view title() const override { return "One choice changed"; }
  [[nodiscard]] bool applies(const Input& input) const override {
    return input.has("/kind") && input.at("/kind") == "serving" && input.has("/effects/0");
  }
  [[nodiscard]] std::string html(const Input& input) const override {
    std::vector<std::vector<std::string>> rows;
    const Json& effects = input.at("/effects");
    for (std::size_t i = 0; i < effects.size(); ++i) {
      const std::string at = fmt::format("/effects/{}/simulated", i);
      const auto text = [&](const char* key) { return escaped(effects[i].at(key).get<std::string>()); };
      const auto cell = [&](const char* key, Unit unit) { return input.has(at) ? number(input.result, at + key, unit) : ""; };
      rows.push_back({text("key"), text("value"), cell("/ttft/mean_s", Unit::time), cell("/tpot/mean_s", Unit::time),
                      cell("/output_tokens_per_s", Unit::count), input.has(at) ? "" : text("refused")});
    }
    return table("The same requests with one choice changed, means by simulation",
                 {{"choice", true},
                  {"instead", true},
                  {"time to first token"},
                  {"time per output token"},
                  {"output tokens/s"},
                  {"not possible", true}},
                 rows);
  }
};

const SectionRegistry::Registration<ServingChoices> serving_choices_registration("serving-choices");

}  // namespace
}  // namespace rehearse::sim::page
