// explain.csv: one row per choice that could be another (docs/serving.md, "Explain").
#include "sim/report/csv.hpp"
#include "sim/report/reporter.hpp"
#include "sim/serving/serving_report.hpp"

namespace rehearse::sim {
namespace {

class ServingExplainCsv final : public Reporter {
 public:
  [[nodiscard]] std::string_view file_name() const override { return "explain.csv"; }
  [[nodiscard]] bool applies(const Report& report) const override {
    const auto* serving = report.find<ServingReport>();
    return serving != nullptr && !serving->effects.empty();
  }
  void write(const Report& report, std::ostream& out) const override {
    out << "key,value,ttft_s,tpot_s,e2e_s,output_tokens_per_s,within_promise,goodput_requests_per_s,cost_per_s,refusal\n";
    for (const ServingEffect& effect : report.get<ServingReport>().effects) {
      if (!effect.simulated) {
        csv_row(out, effect.key, effect.value, "", "", "", "", "", "", "", effect.refused);
        continue;
      }
      const ServingResult& with = *effect.simulated;
      csv_row(out, effect.key, effect.value, with.ttft.mean_s, with.tpot.mean_s, with.e2e.mean_s, with.output_tokens_per_s,
              with.attained < 0 ? "" : csv_cell(with.attained), with.goodput_per_s < 0 ? "" : csv_cell(with.goodput_per_s), with.cost_per_s,
              "");
    }
  }
};

const ReporterRegistry::Registration<ServingExplainCsv> serving_explain_csv_registration("serving-explain-csv");

}  // namespace
}  // namespace rehearse::sim
