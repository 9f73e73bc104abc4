// plan.yaml: the job with the deployment that tune chose (docs/serving.md, "Tuning").
#include <ostream>

#include "sim/report/reporter.hpp"
#include "sim/serving/serving_report.hpp"

namespace rehearse::sim {
namespace {

class PlanYaml final : public Reporter {
 public:
  [[nodiscard]] std::string_view file_name() const override { return "plan.yaml"; }
  [[nodiscard]] bool applies(const Report& report) const override {
    const auto* serving = report.find<ServingReport>();
    return serving != nullptr && !serving->plan_yaml.empty();
  }
  void write(const Report& report, std::ostream& out) const override { out << report.get<ServingReport>().plan_yaml; }
};

const ReporterRegistry::Registration<PlanYaml> plan_yaml_registration("serving-plan-yaml");

}  // namespace
}  // namespace rehearse::sim
