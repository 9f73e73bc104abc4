#include <fmt/format.h>
#include <fmt/ostream.h>

#include "sim/report/reporter.hpp"
#include "sim/report/table.hpp"
#include "sim/validate/regret.hpp"

namespace rehearse::sim {
namespace {

std::string regret_percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

class RegretConsole final : public Reporter {
 public:
  [[nodiscard]] std::string_view file_name() const override { return ""; }
  [[nodiscard]] bool applies(const Report& report) const override { return report.has<SweepRegrets>(); }
  void write(const Report& report, std::ostream& out) const override {
    const auto& regrets = report.get<SweepRegrets>();
    Table table{
        .columns = {{"sweep", Align::left}, {"cases"}, {"ran"}, {"regret"}, {"of five"}, {"picked", Align::left}, {"best", Align::left}}};
    table.bold_header = report.colour;
    double sum = 0, sum_of_five = 0;
    int out_of_memory = 0;
    for (const SweepRegret& one : regrets) {
      const std::string picked = one.picked.empty()  ? "none is said to fit"
                                 : one.out_of_memory ? one.picked + " (out of memory)"
                                                     : one.picked;
      table.rows.push_back({one.sweep, fmt::format("{}", one.cases), fmt::format("{}", one.ran), regret_percent(one.regret),
                            regret_percent(one.of_five), picked, one.best == one.picked ? "" : one.best});
      sum += one.regret;
      sum_of_five += one.of_five;
      out_of_memory += one.out_of_memory ? 1 : 0;
    }
    if (regrets.empty()) return fmt::print(out, "{}\n", "no two cases share a sweep");
    table.print(out);
    const auto count = static_cast<double>(regrets.size());
    fmt::print(out, "\n{} sweeps: mean regret {}, of the best of five {}; {} picked plans ran out of memory\n", regrets.size(),
               regret_percent(sum / count), regret_percent(sum_of_five / count), out_of_memory);
  }
};

const ReporterRegistry::Registration<RegretConsole> validation_regret_registration("validation-regret");

}  // namespace
}  // namespace rehearse::sim
