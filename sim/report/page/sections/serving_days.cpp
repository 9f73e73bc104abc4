// A service over days with failures: `run` of a job that serves.
#include <fmt/format.h>

#include "sim/report/page/page.hpp"

namespace rehearse::sim::page {
namespace {

class ServingDays final : public Section {
 public:
  [[nodiscard]] int order() const override { return 16; }
  [[nodiscard]] std::string_view title() const override { return "Days with failures"; }
  [[nodiscard]] bool applies(const Input& input) const override { return input.has("/run/without_failures") && input.has("/run/runs"); }
  [[nodiscard]] std::string html(const Input& input) const override {
    std::vector<std::vector<std::string>> rows{row(input, "without failures", "/run/without_failures")};
    for (std::size_t run = 0; run < input.at("/run/runs").size(); ++run)
      rows.push_back(row(input, fmt::format("history {}", run + 1), fmt::format("/run/runs/{}", run)));
    return table("The same requests under each history of failures",
                 {{"run", true},
                  {"goodput availability"},
                  {"requests/s within the promise"},
                  {"minutes kept"},
                  {"failures of instances"},
                  {"began again"},
                  {"lost"}},
                 rows);
  }

 private:
  static std::vector<std::string> row(const Input& input, std::string name, const std::string& at) {
    const auto cell = [&](const char* key, Unit unit) { return number(input.result, at + key, unit); };
    return {std::move(name),
            cell("/availability", Unit::percent),
            cell("/within_per_s", Unit::plain),
            cell("/minutes_kept", Unit::percent),
            cell("/instance_failures", Unit::count),
            cell("/retried", Unit::count),
            cell("/lost", Unit::count)};
  }
};

const SectionRegistry::Registration<ServingDays> serving_days_registration("serving-days");

}  // namespace
}  // namespace rehearse::sim::page
