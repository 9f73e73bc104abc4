// A reporter of these tests: the step in one line, in a file of -o.
#include <ostream>

#include "sim/report/reporter.hpp"

namespace rehearse::tests {
namespace {

class Motto final : public sim::Reporter {
 public:
  [[nodiscard]] std::string_view file_name() const override { return "motto.txt"; }
  [[nodiscard]] bool applies(const sim::Report& report) const override { return !sim::steps_of(report).empty(); }
  void write(const sim::Report& report, std::ostream& out) const override {
    out << report.job.name << " takes " << sim::steps_of(report).front()->step_s << " s\n";
  }
};

const sim::ReporterRegistry::Registration<Motto> motto_registration("motto");

}  // namespace
}  // namespace rehearse::tests
