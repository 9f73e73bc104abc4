// What features of the job are worth: switched one at a time by `explain`, left out one at a time by `compare --features`.
#include <fmt/format.h>

#include "sim/report/page/page.hpp"

namespace rehearse::sim::page {
namespace {

std::string text(const Json& entry, const char* key) {
  return escaped(entry.at(key).is_string() ? entry.at(key).get<std::string>() : entry.at(key).dump());
}

std::string switches(const Input& input) {
  std::vector<std::vector<std::string>> rows;
  const Json& all = input.at("/explanation/switches");
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::string at = fmt::format("/explanation/switches/{}/", i);
    rows.push_back({text(all[i], "feature"), text(all[i], "from"), text(all[i], "to"),
                    number(input.result, at + "step_s", Unit::milliseconds), number(input.result, at + "peak_bytes", Unit::bytes),
                    all[i].at("fits").get<bool>() ? "yes" : "no"});
  }
  return table("One feature switched, the rest as it is: best first",
               {{"feature", true}, {"from", true}, {"to", true}, {"step"}, {"fullest GPU"}, {"fits", true}}, rows);
}

std::string refused(const Input& input) {
  if (!input.has("/explanation/refused/0")) return "";
  std::vector<std::vector<std::string>> rows;
  for (const Json& one : input.at("/explanation/refused")) rows.push_back({text(one, "feature"), text(one, "to"), text(one, "refusal")});
  return table("What the job refuses", {{"feature", true}, {"to", true}, {"why", true}}, rows);
}

std::string effects(const Input& input) {
  std::vector<std::vector<std::string>> rows;
  const Json& all = input.at("/features");
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::string at = fmt::format("/features/{}/", i);
    rows.push_back({text(all[i], "feature"), text(all[i], "value"), text(all[i], "without"),
                    number(input.result, at + "analytic_s", Unit::milliseconds),
                    number(input.result, at + "simulated_s", Unit::milliseconds), number(input.result, at + "analytic_bytes", Unit::bytes),
                    number(input.result, at + "simulated_bytes", Unit::bytes)});
  }
  return table("What the job has minus what it would have without the feature; bytes of the fullest GPU",
               {{"feature", true},
                {"value", true},
                {"without", true},
                {"step, formula"},
                {"step, simulated"},
                {"bytes, formula"},
                {"bytes, simulated"}},
               rows);
}

class Features final : public Section {
 public:
  [[nodiscard]] int order() const override { return 70; }
  [[nodiscard]] std::string_view title() const override { return "What features are worth"; }
  [[nodiscard]] bool applies(const Input& input) const override { return input.has("/explanation/switches") || input.has("/features/0"); }
  [[nodiscard]] std::string html(const Input& input) const override {
    std::string out;
    if (input.has("/explanation/switches")) out += switches(input) + refused(input);
    if (input.has("/features/0")) out += effects(input);
    return out;
  }
};

const SectionRegistry::Registration<Features> features_registration("features");

}  // namespace
}  // namespace rehearse::sim::page
