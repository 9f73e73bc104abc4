// A format of these tests, to import and to export: what one writes on a napkin.
#include <ostream>

#include "sim/export/exporter.hpp"
#include "sim/import/fields.hpp"
#include "sim/import/importer.hpp"

namespace rehearse::tests {
namespace {

class NapkinIn final : public sim::Importer {
 public:
  [[nodiscard]] std::string_view summary() const override { return "a napkin"; }
  [[nodiscard]] sim::Draft read(const sim::ImportRequest& request) const override {
    sim::Fields fields(config::Node::load_file(request.path));
    sim::Draft draft(sim::Draft::Kind::job);
    for (const auto& [from, to] : {std::pair{"who", "model"}, {"many", "gpus"}, {"at_once", "batch.global"}, {"long", "batch.sequence"}}) {
      const auto value = fields.take(from);
      value ? draft.set(to, *value) : draft.need(to, "it is not on the napkin");
    }
    draft.set("batch.micro", 1);
    draft.need("cluster", "there was no room for it");
    fields.report(draft, {"coffee"});
    return draft;
  }
};

class NapkinOut final : public sim::Exporter {
 public:
  [[nodiscard]] std::string_view summary() const override { return "a napkin"; }
  [[nodiscard]] std::string_view read_by() const override { return "napkin"; }
  [[nodiscard]] std::vector<sim::ExportedFile> files(const sim::Job& job) const override {
    return {{"", [&job](std::ostream& out) {
               out << "who: " << job.workload.model.name << "\nmany: " << job.system.gpus << "\nat_once: " << job.workload.batch.global
                   << "\nlong: " << job.workload.batch.sequence << '\n';
             }}};
  }
};

const sim::ImporterRegistry::Registration<NapkinIn> napkin_in_registration("napkin");
const sim::ExporterRegistry::Registration<NapkinOut> napkin_out_registration("napkin");

}  // namespace
}  // namespace rehearse::tests
