// The job with every name replaced and every default filled in.
#include "sim/report/page/page.hpp"

namespace rehearse::sim::page {
namespace {

class ResolvedJobSection final : public Section {
 public:
  [[nodiscard]] int order() const override { return 200; }
  [[nodiscard]] std::string_view title() const override { return "The job, resolved"; }
  [[nodiscard]] bool applies(const Input& input) const override { return input.file("resolved-job.yaml") != nullptr; }
  [[nodiscard]] std::string html(const Input& input) const override {
    return "<p class=\"sub\">It can be given to any command in place of the job and gives the same results.</p>\n"
           "<div class=\"frame tall\" role=\"region\" aria-label=\"The resolved job\" tabindex=\"0\"><pre>" +
           escaped(*input.file("resolved-job.yaml")) + "</pre></div>\n";
  }
};

const SectionRegistry::Registration<ResolvedJobSection> resolved_job_section_registration("job");

}  // namespace
}  // namespace rehearse::sim::page
