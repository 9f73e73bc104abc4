// resolved-job.yaml: the job with every name and default written out; it can be given to rehearse again.
#include <ostream>

#include "sim/report/reporter.hpp"

namespace rehearse::sim {
namespace {

class ResolvedJob final : public Reporter {
 public:
  [[nodiscard]] std::string_view file_name() const override { return "resolved-job.yaml"; }
  [[nodiscard]] bool applies(const Report& report) const override { return !report.job.resolved_yaml.empty(); }
  void write(const Report& report, std::ostream& out) const override {
    out << report.job.resolved_yaml;
    if (!report.job.resolved_yaml.ends_with('\n')) out << '\n';
  }
};

const ReporterRegistry::Registration<ResolvedJob> resolved_job_registration("resolved-job");

}  // namespace
}  // namespace rehearse::sim
