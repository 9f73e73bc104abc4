// methods.csv: a job with its sides apart and together on the same GPUs, a row per deployment (docs/serving.md, "Apart or together").
#include "sim/report/csv.hpp"
#include "sim/report/reporter.hpp"
#include "sim/serving/serving_report.hpp"

namespace rehearse::sim {
namespace {

class ServingMethodsCsv final : public Reporter {
 public:
  [[nodiscard]] std::string_view file_name() const override { return "methods.csv"; }
  [[nodiscard]] bool applies(const Report& report) const override {
    const auto* serving = report.find<ServingReport>();
    return serving != nullptr && !serving->methods.empty();
  }
  void write(const Report& report, std::ostream& out) const override {
    out << "method,deployment,gpus,ttft_s,ttft_p90_s,tpot_s,tpot_p90_s,e2e_s,output_tokens_per_s,within_promise,goodput_requests_per_s,"
           "cost_per_s,refusal\n";
    for (const ServingEffect& method : report.get<ServingReport>().methods) {
      if (!method.simulated) {
        csv_row(out, method.key, method.value, "", "", "", "", "", "", "", "", "", "", method.refused);
        continue;
      }
      const ServingResult& with = *method.simulated;
      csv_row(out, method.key, method.value, with.gpus(), with.ttft.mean_s, with.ttft.p90_s, with.tpot.mean_s, with.tpot.p90_s,
              with.e2e.mean_s, with.output_tokens_per_s, with.attained < 0 ? "" : csv_cell(with.attained),
              with.goodput_per_s < 0 ? "" : csv_cell(with.goodput_per_s), with.cost_per_s, "");
    }
  }
};

const ReporterRegistry::Registration<ServingMethodsCsv> serving_methods_csv_registration("serving-methods-csv");

}  // namespace
}  // namespace rehearse::sim
