// Where formula and simulation of a deployment part, and why.
#include <fmt/format.h>

#include "sim/report/page/step_results.hpp"

namespace rehearse::sim::page {
namespace {

class ServingComparison final : public Section {
 public:
  [[nodiscard]] int order() const override { return 14; }
  [[nodiscard]] std::string_view title() const override { return "Formula against simulation"; }
  [[nodiscard]] bool applies(const Input& input) const override {
    return input.has("/kind") && input.at("/kind") == "serving" && input.has("/differences/0");
  }
  [[nodiscard]] std::string html(const Input& input) const override {
    std::vector<std::vector<std::string>> rows;
    const Json& differences = input.at("/differences");
    for (std::size_t i = 0; i < differences.size(); ++i) {
      const std::string at = fmt::format("/differences/{}/", i);
      rows.push_back(
          {words_of_key(differences[i].at("phase").get<std::string>()), number(input.result, at + "analytic_s", Unit::milliseconds),
           number(input.result, at + "simulated_s", Unit::milliseconds), escaped(differences[i].at("reason").get<std::string>())});
    }
    return table("Stage by stage, mean over the requests that count", {{"stage", true}, {"formula"}, {"simulated"}, {"reason", true}},
                 rows);
  }
};

const SectionRegistry::Registration<ServingComparison> serving_comparison_registration("serving-comparison");

}  // namespace
}  // namespace rehearse::sim::page
