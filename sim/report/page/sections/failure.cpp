// A failure inside a step: who hangs, since when, and what is lost.
#include <fmt/format.h>

#include "sim/report/page/page.hpp"

namespace rehearse::sim::page {
namespace {

constexpr std::size_t most_hung = 50;

std::string failures(const Input& input) {
  std::string out;
  for (std::size_t i = 0; i < input.at("/failure/failures").size(); ++i) {
    out += fmt::format("<p>{}: {} into the step.</p>\n", escaped(input.at(fmt::format("/failure/failures/{}/what", i)).get<std::string>()),
                       number(input.result, fmt::format("/failure/failures/{}/at_s", i), Unit::time));
  }
  return out;
}

class Failure final : public Section {
 public:
  [[nodiscard]] int order() const override { return 25; }
  [[nodiscard]] std::string_view title() const override { return "The failure"; }
  [[nodiscard]] bool applies(const Input& input) const override { return input.has("/failure/failures"); }
  [[nodiscard]] std::string html(const Input& input) const override {
    const bool detected = input.at("/failure/detected_s").is_number();
    std::string out = failures(input);
    out += detected
               ? fmt::format("<p>Detected after {}; {} are lost and done again.</p>\n",
                             number(input.result, "/failure/detected_s", Unit::time), number(input.result, "/failure/lost_s", Unit::time))
               : "<p>Nothing in this step waits for what failed.</p>\n";
    out += fmt::format("<p>{} of {} operations have ended.</p>\n", number(input.result, "/failure/ended", Unit::count),
                       number(input.result, "/failure/operations", Unit::count));
    std::vector<std::vector<std::string>> rows;
    const Json& hung = input.at("/failure/hung");
    for (std::size_t i = 0; i < std::min(hung.size(), most_hung); ++i) {
      const std::string at = fmt::format("/failure/hung/{}/", i);
      rows.push_back({number(input.result, at + "rank", Unit::count), escaped(hung[i].at("operation").get<std::string>()),
                      escaped(hung[i].at("group").get<std::string>()), number(input.result, at + "since_s", Unit::time)});
    }
    if (rows.empty()) return out;
    const std::string all = hung.size() > most_hung ? fmt::format(", the first {} of {}", most_hung, hung.size()) : "";
    return out + table("Communications that hang on living ranks" + all, {{"rank"}, {"operation", true}, {"group", true}, {"since"}}, rows);
  }
};

const SectionRegistry::Registration<Failure> failure_registration("failure");

}  // namespace
}  // namespace rehearse::sim::page
