// What is communicated in a step, call by call, as nccl-tests count.
#include <fmt/format.h>

#include "sim/report/page/step_results.hpp"

namespace rehearse::sim::page {
namespace {

class Collectives final : public Section {
 public:
  [[nodiscard]] int order() const override { return 50; }
  [[nodiscard]] std::string_view title() const override { return "Collectives"; }
  [[nodiscard]] bool applies(const Input& input) const override {
    return !methods_of(input).empty() && input.has(result_at(main_method(input)) + "/collectives/0");
  }
  [[nodiscard]] std::string html(const Input& input) const override {
    const std::string at = result_at(main_method(input)) + "/collectives";
    std::vector<std::vector<std::string>> rows;
    for (std::size_t i = 0; i < input.at(at).size(); ++i) {
      const Json& one = input.at(at)[i];
      const std::string place = fmt::format("{}/{}/", at, i);
      const auto cell = [&](const char* key, Unit unit) { return number(input.result, place + key, unit); };
      rows.push_back({escaped(one.at("name").get<std::string>()), escaped(one.at("group").get<std::string>()),
                      escaped(one.at("algorithm").get<std::string>()), cell("ranks", Unit::count), cell("bytes", Unit::bytes),
                      cell("calls", Unit::count), cell("seconds", Unit::time), cell("in_step_s", Unit::time),
                      cell("algbw_bytes_per_s", Unit::gigabytes_per_s), cell("busbw_bytes_per_s", Unit::gigabytes_per_s)});
    }
    return table("Calls of one rank in one step; alone on an idle cluster and in the step, where links are shared",
                 {{"collective", true},
                  {"group", true},
                  {"algorithm", true},
                  {"ranks"},
                  {"size"},
                  {"calls"},
                  {"alone"},
                  {"in the step"},
                  {"algbw"},
                  {"busbw"}},
                 rows);
  }
};

const SectionRegistry::Registration<Collectives> collectives_registration("collectives");

}  // namespace
}  // namespace rehearse::sim::page
