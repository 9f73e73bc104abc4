#include "sim/report/page/page.hpp"

#include <fmt/ostream.h>

#include <algorithm>
#include <ostream>
#include <vector>

#include "sim/report/page/style.hpp"
#include "sim/report/reporter.hpp"
#include "sim/report/version.hpp"

namespace rehearse::sim::page {
namespace {

std::string text_at(const Input& input, const std::string& pointer) {
  if (!input.has(pointer)) return "";
  const Json& value = input.at(pointer);
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string name_of_job(const Input& input) {
  std::string name = text_at(input, "/job/name");
  if (!name.empty()) return name;
  const std::string plain = input.has("/job") && input.at("/job").is_string() ? text_at(input, "/job") : "";
  return plain.empty() ? "rehearse" : plain;
}

// "llama2-70b on 128 x a100 (dgx); tp 8, pp 8; 256 sequences": what there is of it.
std::string job_in_short(const Input& input) {
  if (!input.has("/job/model")) return "";
  if (input.at("/job/gpus") == 0)  // of devices that are no GPUs the layout tells
    return fmt::format("{}; {}; {}", text_at(input, "/job/model"), text_at(input, "/job/layout"), text_at(input, "/job/batch"));
  return fmt::format("{} on {} x {} ({}); {}; {}", text_at(input, "/job/model"), text_at(input, "/job/gpus"), text_at(input, "/job/gpu"),
                     text_at(input, "/job/cluster"), text_at(input, "/job/layout"), text_at(input, "/job/batch"));
}

std::vector<std::pair<std::string, const Section*>> sections_of(const Input& input) {
  std::vector<std::pair<std::string, const Section*>> sections;
  for (const std::string& name : SectionRegistry::names()) {
    const Section& section = SectionRegistry::get(name);
    if (section.applies(input)) sections.emplace_back(name, &section);
  }
  std::ranges::stable_sort(sections, {}, [](const auto& entry) { return entry.second->order(); });
  return sections;
}

void write_head(const std::string& title, std::ostream& out) {
  fmt::print(
      out,
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{}'\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{} - rehearse</title>\n<style>{}</style>\n"
      "</head>\n<body>\n",
      script_sha256, title, style);
}

}  // namespace

void write(const Input& input, std::ostream& out) {
  const auto sections = sections_of(input);
  const std::string title = escaped(name_of_job(input));
  write_head(title, out);
  fmt::print(out, "<header><h1>{}</h1><p class=\"sub\">{}</p></header>\n<nav aria-label=\"Sections\"><ul>\n", title,
             escaped(job_in_short(input)));
  for (const auto& [name, section] : sections) fmt::print(out, "<li><a href=\"#{}\">{}</a></li>\n", name, escaped(section->title()));
  out << "</ul></nav>\n<main>\n";
  for (const auto& [name, section] : sections) {
    fmt::print(out, "<section id=\"{0}\" aria-labelledby=\"{0}-title\">\n<h2 id=\"{0}-title\">{1}</h2>\n{2}</section>\n", name,
               escaped(section->title()), section->html(input));
  }
  const std::string made_by =
      input.has("/input_hash") ? fmt::format("; seed {}, input {}", text_at(input, "/seed"), text_at(input, "/input_hash")) : "";
  fmt::print(out, "</main>\n<footer>rehearse {}{}</footer>\n<script>{}</script>\n</body>\n</html>\n", version(), escaped(made_by), script);
}

namespace {

class ReportPage final : public Reporter {
 public:
  [[nodiscard]] std::string_view file_name() const override { return "report.html"; }
  [[nodiscard]] bool applies(const Report& report) const override { return report.has<PageWanted>(); }
  void write(const Report& report, std::ostream& out) const override { page::write(input_of(report), out); }
};

const ReporterRegistry::Registration<ReportPage> report_page_registration("report-page");

}  // namespace
}  // namespace rehearse::sim::page
