// What became of every point of a searched space: evaluated, left out by a bound, refused by a rule.
#include "sim/report/page/tune_results.hpp"

namespace rehearse::sim::page {
namespace {

class TunePoints final : public Section {
 public:
  [[nodiscard]] int order() const override { return 18; }
  [[nodiscard]] std::string_view title() const override { return "What became of all points"; }
  [[nodiscard]] bool applies(const Input& input) const override { return has_search(input); }
  [[nodiscard]] std::string html(const Input& input) const override {
    const std::string at = "/tune/counts/";
    const Json& counts = input.at("/tune/counts");
    std::vector<std::vector<std::string>> rows;
    const auto add = [&](const std::string& pointer, const std::string& what, const std::string& why) {
      if (input.at(at + pointer) != 0) rows.push_back({number(input.result, at + pointer, Unit::count), what, why});
    };
    add("evaluated", "evaluated", "");
    add("may_run_out", "of them may run out of memory", "they fit, but not with the most that measured runs needed beyond the formula");
    add("do_not_fit", "of them do not fit", "");
    for (const auto& [bound, unused] : counts.at("left_out").items()) add("left_out/" + pointer_part(bound), "left out", escaped(bound));
    for (std::size_t i = 0; i < counts.at("refused").size(); ++i) {
      const Json& rule = counts.at("refused")[i];
      add(fmt::format("refused/{}/points", i), "refused: " + escaped(rule.at("key").get<std::string>()),
          escaped("for example: " + rule.at("example").get<std::string>()));
    }
    if (counts.at("decided") < counts.at("points")) add("decided", "decided before the search was ended", "");
    add("points", "in all", "");
    return table("Points of the space", {{"points"}, {"what became of them", true}, {"why", true}}, rows);
  }
};

const SectionRegistry::Registration<TunePoints> tune_points_registration("tune-points");

}  // namespace
}  // namespace rehearse::sim::page
