// Methods of fitting a job with experts into memory, side by side.
#include <fmt/format.h>

#include "sim/report/page/page.hpp"

namespace rehearse::sim::page {
namespace {

class Methods final : public Section {
 public:
  [[nodiscard]] int order() const override { return 65; }
  [[nodiscard]] std::string_view title() const override { return "Methods side by side"; }
  [[nodiscard]] bool applies(const Input& input) const override { return input.has("/methods/0/stages"); }
  [[nodiscard]] std::string html(const Input& input) const override {
    std::vector<std::vector<std::string>> steps;
    std::vector<std::vector<std::string>> stages;
    for (std::size_t i = 0; i < input.at("/methods").size(); ++i) {
      const Json& method = input.at("/methods")[i];
      const std::string name = escaped(method.at("method").get<std::string>());
      const std::string at = fmt::format("/methods/{}/", i);
      steps.push_back({name, number(input.result, at + "step_s", Unit::milliseconds),
                       number(input.result, at + "tokens_per_s", Unit::count), method.at("fits").get<bool>() ? "yes" : "no"});
      for (std::size_t s = 0; s < method.at("stages").size(); ++s) {
        const auto cell = [&](const char* key, Unit unit) { return number(input.result, fmt::format("{}stages/{}/{}", at, s, key), unit); };
        stages.push_back({cell("stage", Unit::count), name, cell("activation_bytes", Unit::bytes), cell("peak_bytes", Unit::bytes),
                          cell("needed_bytes", Unit::bytes), cell("capacity_bytes", Unit::bytes)});
      }
    }
    return table("Steps", {{"method", true}, {"step"}, {"tokens/s"}, {"fits", true}}, steps) +
           table("The fullest rank of each stage", {{"stage"}, {"method", true}, {"activations"}, {"peak"}, {"needed"}, {"of"}}, stages);
  }
};

const SectionRegistry::Registration<Methods> methods_registration("methods");

}  // namespace
}  // namespace rehearse::sim::page
