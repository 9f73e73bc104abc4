// Where formula and simulation part, and why.
#include <fmt/format.h>

#include "sim/report/page/step_results.hpp"

namespace rehearse::sim::page {
namespace {

class ComparisonSection final : public Section {
 public:
  [[nodiscard]] int order() const override { return 60; }
  [[nodiscard]] std::string_view title() const override { return "Formula against simulation"; }
  [[nodiscard]] bool applies(const Input& input) const override { return input.has("/comparison/phases"); }
  [[nodiscard]] std::string html(const Input& input) const override {
    std::string out = fmt::format("<p>The simulated step differs from the formula by {}.</p>\n",
                                  number(input.result, "/comparison/difference", Unit::percent));
    for (const Json& reason : input.at("/comparison/reasons")) out += fmt::format("<p>{}</p>\n", escaped(reason.get<std::string>()));
    std::vector<std::vector<std::string>> rows;
    for (std::size_t i = 0; i < input.at("/comparison/phases").size(); ++i) {
      const std::string at = fmt::format("/comparison/phases/{}/", i);
      if (input.at(at + "analytic_s") == 0 && input.at(at + "simulated_s") == 0) continue;
      rows.push_back({words_of_key(input.at(at + "phase").get<std::string>()), number(input.result, at + "analytic_s", Unit::milliseconds),
                      number(input.result, at + "simulated_s", Unit::milliseconds),
                      number(input.result, at + "difference_s", Unit::milliseconds), escaped(input.at(at + "reason").get<std::string>())});
    }
    return out + table("Phase by phase, mean over all ranks",
                       {{"phase", true}, {"formula"}, {"simulated"}, {"difference"}, {"reason", true}}, rows);
  }
};

const SectionRegistry::Registration<ComparisonSection> comparison_section_registration("comparison");

}  // namespace
}  // namespace rehearse::sim::page
