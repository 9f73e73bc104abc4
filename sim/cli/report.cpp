// `rehearse report DIR`: the page of a folder that an earlier command wrote with -o.
#include <spdlog/spdlog.h>

#include <CLI/App.hpp>
#include <filesystem>
#include <sstream>

#include "sim/cli/command.hpp"
#include "sim/report/json_file.hpp"
#include "sim/report/output_folder.hpp"
#include "sim/report/page/page.hpp"

namespace rehearse::cli {
namespace {

// Sections trust that result.json is as a command wrote it.
std::string page_of(const std::string& folder) {
  const sim::page::Input input = sim::page::input_of(std::filesystem::path(folder));
  std::ostringstream page;
  try {
    sim::page::write(input, page);
  } catch (const sim::page::Json::exception& error) {
    throw config::InputError(fmt::format("'{}': a file is not as rehearse writes it: {}", folder, sim::reason_of(error)),
                             "give a folder that -o has written");
  }
  return page.str();
}

Exit report(const std::string& folder) {
  const std::string page = page_of(folder);
  const sim::OutputFolder output(folder);
  for (const std::string& path : output.write({{"report.html", [&](std::ostream& out) { out << page; }}})) spdlog::info("wrote {}", path);
  return Exit::fine;
}

class ReportCommand final : public Command {
 public:
  [[nodiscard]] std::string_view summary() const override { return "Make one page for browsers, report.html, of what -o has written"; }
  [[nodiscard]] std::string_view examples() const override {
    return "Examples:\n"
           "  rehearse compare llama2-70b-128-a100 -o out && rehearse report out      then open out/report.html; it needs no network\n"
           "  rehearse run llama3-405b-54-days --runs 100 -o out --html               the same at once\n";
  }
  [[nodiscard]] Action declare(CLI::App& app) const override {
    auto folder = std::make_shared<std::string>();
    app.add_option("DIR", *folder, "A folder that a command with -o has written; report.html is put there")->required();
    return [folder] { return report(*folder); };
  }
};

const CommandRegistry::Registration<ReportCommand> report_command_registration("report");

}  // namespace
}  // namespace rehearse::cli
