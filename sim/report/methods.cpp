// Methods side by side, for people and for programs: memory per stage, step, throughput.
#include <fmt/ostream.h>

#include <map>
#include <nlohmann/json.hpp>
#include <ostream>

#include "sim/compare/methods.hpp"
#include "sim/report/console_tables.hpp"
#include "sim/report/job_head.hpp"
#include "sim/report/json_text.hpp"
#include "sim/report/memory_table.hpp"
#include "sim/report/reporter.hpp"
#include "sim/report/table.hpp"
#include "sim/report/version.hpp"

namespace rehearse::sim {
namespace {

using Json = nlohmann::ordered_json;

std::string chunks_text(const StepResult& result) {
  if (!result.experts) return "";
  std::map<int, int> layers;
  for (const int chunks : result.experts->chunks) {
    if (chunks > 0) ++layers[chunks];
  }
  std::string text;
  for (const auto& [chunks, count] : layers) text += fmt::format("{}{} x {}", text.empty() ? "" : ", ", count, chunks);
  return text;
}

Table step_table(const std::vector<MethodResult>& methods) {
  const Milliseconds ms(methods.front().simulated.step_s);
  Table table{
      .columns = {{"method", Align::left}, {"step ms"}, {"tokens/s"}, {"against first"}, {"fits"}, {"layers x chunks", Align::left}}};
  const double first = methods.front().simulated.tokens_per_s;
  for (const MethodResult& method : methods) {
    const StepResult& result = method.simulated;
    table.rows.push_back({method.name, ms(result.step_s), fmt::format("{:.0f}", result.tokens_per_s),
                          fmt::format("{:+.2f} %", 100 * (result.tokens_per_s / first - 1)), result.memory.fits() ? "yes" : "out of memory",
                          chunks_text(result)});
  }
  return table;
}

Table memory_of_stages(const std::vector<MethodResult>& methods) {
  Table table{.columns = {{"stage"},
                          {"method", Align::left},
                          {"rank"},
                          {"activations GiB"},
                          {"peak"},
                          {"needed"},
                          {"of"},
                          {"fits"},
                          {"peak in", Align::left}}};
  const auto stages = fullest_of_stages(methods.front().simulated);
  for (const auto& [stage, unused] : stages) {
    for (const MethodResult& method : methods) {
      const RankMemory& rank = *fullest_of_stages(method.simulated).at(stage);
      table.rows.push_back({fmt::format("{}", stage), method.name, fmt::format("{}", rank.rank), in_gib(activation_bytes(rank)),
                            in_gib(rank.peak_bytes()), in_gib(rank.needed_bytes()), in_gib(rank.capacity_bytes), rank.fits() ? "yes" : "no",
                            peak_place(rank)});
    }
  }
  return table;
}

class MethodsConsole final : public Reporter {
 public:
  [[nodiscard]] std::string_view file_name() const override { return ""; }
  [[nodiscard]] bool applies(const Report& report) const override { return report.has<MethodResults>(); }
  void write(const Report& report, std::ostream& out) const override {
    print_job(report.job, out);
    if (const std::string experts = experts_line(report.get<MethodResults>().front().simulated); !experts.empty())
      fmt::print(out, "{}\n", experts);
    for (Table table : {step_table(report.get<MethodResults>()), memory_of_stages(report.get<MethodResults>())}) {
      table.bold_header = report.colour;
      out << '\n';
      table.print(out);
    }
  }
};

Json method_json(const MethodResult& method) {
  Json stages = Json::array();
  for (const auto& [stage, rank] : fullest_of_stages(method.simulated)) {
    stages.push_back({{"stage", stage},
                      {"rank", rank->rank},
                      {"activation_bytes", activation_bytes(*rank)},
                      {"peak_bytes", rank->peak_bytes()},
                      {"needed_bytes", rank->needed_bytes()},
                      {"capacity_bytes", rank->capacity_bytes},
                      {"fits", rank->fits()},
                      {"operation", rank->operation},
                      {"microbatch", rank->microbatch},
                      {"step", rank->step}});
  }
  Json json = {{"method", method.name},
               {"step_s", method.simulated.step_s},
               {"tokens_per_s", method.simulated.tokens_per_s},
               {"fits", method.simulated.memory.fits()},
               {"input_hash", method.simulated.input_hash},
               {"stages", std::move(stages)}};
  if (method.simulated.experts) json["chunks"] = method.simulated.experts->chunks;
  return json;
}

class MethodsJson final : public Reporter {
 public:
  [[nodiscard]] std::string_view file_name() const override { return "methods.json"; }
  [[nodiscard]] bool applies(const Report& report) const override { return report.has<MethodResults>(); }
  void write(const Report& report, std::ostream& out) const override {
    Json json = {{"format", 1}, {"version", version()}, {"job", report.job.name}, {"seed", report.job.seed}, {"methods", Json::array()}};
    for (const MethodResult& method : report.get<MethodResults>()) json["methods"].push_back(method_json(method));
    print_json(json, out);
  }
};

const ReporterRegistry::Registration<MethodsConsole> methods_console_registration("methods console");
const ReporterRegistry::Registration<MethodsJson> methods_json_registration("methods json");

}  // namespace
}  // namespace rehearse::sim
