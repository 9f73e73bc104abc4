// Several runs of a whole job: how their ETTR is spread over the seeds.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/report/page/chart.hpp"
#include "sim/report/page/page.hpp"

namespace rehearse::sim::page {
namespace {

constexpr std::size_t fewest = 5;
constexpr double seeds_height = 180;

// Square root of the number of values, as is usual: 10 bins of 100 runs.
std::size_t bins_for(std::size_t values) { return std::clamp<std::size_t>(static_cast<std::size_t>(std::ceil(std::sqrt(values))), 4, 40); }

std::string histogram(const std::vector<double>& values) {
  const auto [lowest, highest] = std::ranges::minmax_element(values);
  const double width = *highest > *lowest ? *highest - *lowest : 1e-3;
  const double from = *highest > *lowest ? *lowest : *lowest - width / 2;
  std::vector<double> counts(bins_for(values.size()));
  const auto bins = static_cast<double>(counts.size());
  for (const double value : values) ++counts[std::min(counts.size() - 1, static_cast<std::size_t>((value - from) / width * bins))];
  const Scale x{from, from + width, 70, chart_width - 30};
  const Scale y{0, *std::ranges::max_element(counts), seeds_height, 10};
  std::string out = axis_below(x, 10, seeds_height, [](double ettr) { return fmt::format("{:.2f} %", 100 * ettr); }) +
                    axis_left(y, x.right, [](double count) { return fmt::format("{:g}", count); });
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) continue;
    const double left = x(from + width * static_cast<double>(i) / bins);
    out += fmt::format("<rect class=\"c-0\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"><title>{:g} runs</title></rect>\n",
                       coordinate(left + 0.5), coordinate(y(counts[i])), coordinate((x.right - x.left) / bins - 1),
                       coordinate(seeds_height - y(counts[i])), counts[i]);
  }
  return svg("Runs by ETTR", seeds_height + 24, out);
}

std::string spread(const Input& input) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& [quantity, name, unit] :
       {std::tuple("ettr", "ETTR", Unit::percent), std::tuple("total_s", "total time", Unit::time),
        std::tuple("steps", "steps", Unit::plain), std::tuple("lost_steps", "steps done again", Unit::plain),
        std::tuple("failures", "failures", Unit::plain)}) {
    const std::string at = fmt::format("/whole_job/simulated/{}/", quantity);
    std::vector<std::string> row = {name};
    for (const char* key : {"mean", "low", "high", "p5", "p50", "p95"}) row.push_back(number(input.result, at + key, unit));
    rows.push_back(std::move(row));
  }
  return table("Over the runs; the mean with its 95 % confidence interval",
               {{"quantity", true}, {"mean"}, {"from"}, {"to"}, {"5 %"}, {"median"}, {"95 %"}}, rows);
}

class Seeds final : public Section {
 public:
  [[nodiscard]] int order() const override { return 84; }
  [[nodiscard]] std::string_view title() const override { return "Over the seeds"; }
  [[nodiscard]] bool applies(const Input& input) const override {
    return input.has("/whole_job/runs") && input.at("/whole_job/runs").size() >= fewest;
  }
  [[nodiscard]] std::string html(const Input& input) const override {
    std::vector<double> ettr;
    for (const Json& run : input.at("/whole_job/runs")) ettr.push_back(run.at("ettr").get<double>());
    return fmt::format("<p class=\"sub\">{} runs by their ETTR.</p>\n", ettr.size()) + histogram(ettr) + spread(input);
  }
};

const SectionRegistry::Registration<Seeds> seeds_registration("seeds");

}  // namespace
}  // namespace rehearse::sim::page
