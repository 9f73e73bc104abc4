#include "sim/cli/program_app.hpp"

#include <fmt/format.h>

#include "sim/cli/other_kinds.hpp"
#include "sim/report/version.hpp"

namespace rehearse::cli {
namespace {

constexpr std::string_view footer =
    "Examples:\n"
    "  rehearse list jobs\n"
    "  rehearse compare llama2-70b-128-a100 -o out\n"
    "  rehearse COMMAND --help\n\n"
    "Exit code: 0 fine, 1 the answer is no, 2 wrong input, 3 internal error.\n";

}  // namespace

ProgramApp::ProgramApp() {
  app.set_version_flag("--version", fmt::format("rehearse {}", sim::version()));
  app.footer(std::string(footer));
  app.allow_extras();
  app.require_subcommand(0, 1);  // a second word that is a command's name is an argument: rehearse man predict
  for (const std::string& name : CommandRegistry::names()) declare(name);
}

void ProgramApp::declare(const std::string& name) {
  const Command& command = CommandRegistry::get(name);
  CLI::App* sub = app.add_subcommand(name, std::string(command.summary()));
  sub->footer(std::string(command.examples()));
  sub->allow_extras();
  actions.emplace(name, command.declare(*sub));
  declare_options_of_kinds(name, *sub);
}

}  // namespace rehearse::cli
