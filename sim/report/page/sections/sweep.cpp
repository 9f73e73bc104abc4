// A whole job run for each value of a key.
#include <fmt/format.h>

#include "sim/report/page/page.hpp"

namespace rehearse::sim::page {
namespace {

class Sweep final : public Section {
 public:
  [[nodiscard]] int order() const override { return 86; }
  [[nodiscard]] std::string_view title() const override { return "Sweep"; }
  [[nodiscard]] bool applies(const Input& input) const override { return input.has("/whole_job/sweep/points/0"); }
  [[nodiscard]] std::string html(const Input& input) const override {
    const std::string at = "/whole_job/sweep/points";
    std::vector<std::vector<std::string>> rows;
    for (std::size_t i = 0; i < input.at(at).size(); ++i) {
      const std::string place = fmt::format("{}/{}/", at, i);
      const Json& value = input.at(place + "value");
      rows.push_back({escaped(value.is_string() ? value.get<std::string>() : value.dump()),
                      number(input.result, place + "ettr/mean", Unit::percent), number(input.result, place + "formula/ettr", Unit::percent),
                      number(input.result, place + "total_s/mean", Unit::time)});
    }
    return table("Mean over the runs of each value", {{"value", true}, {"ETTR"}, {"formula"}, {"total time"}}, rows);
  }
};

const SectionRegistry::Registration<Sweep> sweep_registration("sweep");

}  // namespace
}  // namespace rehearse::sim::page
