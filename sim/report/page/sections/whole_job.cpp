// A whole job: where its time goes, over the runs.
#include <fmt/format.h>

#include <algorithm>

#include "sim/report/page/chart.hpp"
#include "sim/report/page/step_results.hpp"

namespace rehearse::sim::page {
namespace {

constexpr double s_per_ns = 1e-9;

double mean_of(const Input& input, const std::string& cause) {
  double sum = 0;
  for (const Json& run : input.at("/whole_job/runs")) sum += run.at("account_ns").at(cause).get<double>();
  return sum / static_cast<double>(input.at("/whole_job/runs").size());
}

std::string facts(const Input& input) {
  std::string out = "<dl class=\"facts\">\n";
  const auto fact = [&](std::string_view what, const std::string& pointer, Unit unit) {
    out += fmt::format("<div><dt>{}</dt><dd>{}</dd></div>\n", what, number(input.result, pointer, unit));
  };
  fact("ETTR, simulated", "/whole_job/simulated/ettr/mean", Unit::percent);
  fact("ETTR, formula", "/whole_job/formula/ettr", Unit::percent);
  fact("total time", "/whole_job/simulated/total_s/mean", Unit::time);
  fact("failures", "/whole_job/simulated/failures/mean", Unit::plain);
  fact("step", "/whole_job/plan/step_s", Unit::milliseconds);
  fact("a checkpoint every", "/whole_job/plan/interval_steps", Unit::plain);
  return out + "</dl>\n";
}

std::string account(const Input& input) {
  Bar bar{"mean run", {}};
  std::vector<Mark> marks;
  std::vector<std::vector<std::string>> rows;
  double total = 0;
  for (const auto& [cause, unused] : input.at("/whole_job/runs/0/account_ns").items()) total += mean_of(input, cause);
  for (const auto& [cause, unused] : input.at("/whole_job/runs/0/account_ns").items()) {
    const double mean = mean_of(input, cause);
    if (mean <= 0) continue;
    const std::string css = fmt::format("c-{}", marks.size());
    marks.push_back({css, words_of_key(cause)});
    bar.pieces.push_back({css, words_of_key(cause), mean * s_per_ns});
    rows.push_back({words_of_key(cause), worked_out(mean, Unit::nanoseconds, "mean /whole_job/runs/*/account_ns/" + cause),
                    worked_out(mean / total, Unit::percent)});
  }
  const auto words = [](double seconds) { return in_words(seconds, Unit::time); };
  return legend(marks) + stacked_bars("The account", {bar}, total * s_per_ns, words) +
         table("Mean over the runs", {{"cause", true}, {"time"}, {"share"}}, rows);
}

std::string differences(const Input& input) {
  if (!input.has("/whole_job/differences/0")) return "";
  std::vector<std::vector<std::string>> rows;
  for (std::size_t i = 0; i < input.at("/whole_job/differences").size(); ++i) {
    const std::string at = fmt::format("/whole_job/differences/{}/", i);
    rows.push_back({escaped(input.at(at + "cause").get<std::string>()), number(input.result, at + "points", Unit::points),
                    escaped(input.at(at + "reason").get<std::string>())});
  }
  return table("What the runs spend more than the formula, in points of the time", {{"cause", true}, {"points"}, {"reason", true}}, rows);
}

class WholeJob final : public Section {
 public:
  [[nodiscard]] int order() const override { return 80; }
  [[nodiscard]] std::string_view title() const override { return "The whole job"; }
  [[nodiscard]] bool applies(const Input& input) const override { return input.has("/whole_job/runs/0/account_ns"); }
  [[nodiscard]] std::string html(const Input& input) const override { return facts(input) + account(input) + differences(input); }
};

const SectionRegistry::Registration<WholeJob> whole_job_registration("whole-job");

}  // namespace
}  // namespace rehearse::sim::page
