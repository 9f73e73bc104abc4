// rehearse schema: for editors.
#include <CLI/App.hpp>

#include "sim/cli/command.hpp"
#include "sim/cli/json_schema.hpp"
#include "sim/cli/terminal.hpp"
#include "sim/job/job_keys.hpp"
#include "sim/kind/job_kind.hpp"

namespace rehearse::cli {
namespace {

Exit print_schema(const std::string& kind) {
  nlohmann::ordered_json schema{
      {"$schema", "https://json-schema.org/draft/2020-12/schema"}, {"title", "A job of Rehearse"}, {"description", "docs/job-format.md"}};
  schema.update(json_schema(kind.empty() ? sim::job_shape() : sim::JobKindRegistry::get(kind).shape()));
  print_result(schema.dump(2) + '\n');
  return Exit::fine;
}

class Schema final : public Command {
 public:
  [[nodiscard]] std::string_view summary() const override { return "A JSON Schema of job files, for editors"; }
  [[nodiscard]] std::string_view examples() const override {
    return "Examples:\n"
           "  rehearse schema > job.schema.json\n"
           "  # yaml-language-server: $schema=job.schema.json    as the first line of a job, in editors that speak to that server\n";
  }
  [[nodiscard]] Action declare(CLI::App& app) const override {
    auto kind = std::make_shared<std::string>();
    app.add_option("--kind", *kind, "Of jobs with this section instead of training jobs")->type_name("SECTION");
    return [kind] { return print_schema(*kind); };
  }
};

const CommandRegistry::Registration<Schema> schema_registration("schema");

}  // namespace
}  // namespace rehearse::cli
