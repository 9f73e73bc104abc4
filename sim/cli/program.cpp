#include "sim/cli/program.hpp"

#include <fmt/format.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <sstream>

#include "sim/cli/command.hpp"
#include "sim/cli/completion.hpp"
#include "sim/cli/other_kinds.hpp"
#include "sim/cli/program_app.hpp"
#include "sim/cli/said_option.hpp"
#include "sim/cli/terminal.hpp"
#include "sim/job/job_keys.hpp"

namespace rehearse::cli {
namespace {

void talk_on_standard_error() {
  const auto mode = colour_allowed(Stream::err) ? spdlog::color_mode::always : spdlog::color_mode::never;
  auto logger = spdlog::stderr_color_st("rehearse", mode);
  logger->set_pattern("%^%l%$: %v");
  spdlog::set_default_logger(std::move(logger));
}

// "--parallel.tp=4" is how some programs take what is a key of our job files; "" where it is none.
std::string hint_to_set(const CLI::App& command, std::string_view argument) {
  if (!argument.starts_with("--") || command.get_option_no_throw("--set") == nullptr) return "";
  const std::string_view key = argument.substr(2, argument.find('=') - 2);
  for (const config::Place& place : config::all_places(sim::job_shape())) {
    if (place.path == key) return fmt::format("it is a key of job files: --set {}=VALUE", key);
  }
  return "";
}

// The parser keeps what it does not know, so that we can say what might have been meant.
void refuse_extras(const CLI::App& command) {
  const std::vector<std::string> extras = command.remaining();
  if (extras.empty()) return;
  std::vector<std::string> known;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  }
  std::string hint = hint_to_set(command, extras.front());
  if (hint.empty() && extras.front().starts_with('-')) hint = config::suggestion(extras.front(), known);
  throw config::InputError(fmt::format("unexpected argument '{}'", extras.front()), hint);
}

// What goes wrong when even this cannot be written has nowhere to be said.
void say(const std::string& text) { std::fputs(text.c_str(), stderr); }

// An unknown command is refused here, with a suggestion, since the parser would take it for a missing one.
void check_command(int argc, char** argv) {
  if (argc > 1 && argv[1][0] != '-') static_cast<void>(CommandRegistry::get(argv[1]));
}

Exit run_command(int argc, char** argv) {
  ProgramApp program;
  // What the shells ask: words that are no command line yet, which no parser takes.
  if (argc > 1 && std::string_view(argv[1]) == completion_query) {
    print_result(completions_text(program.app, {argv + 2, argv + argc}));
    return Exit::fine;
  }
  check_command(argc, argv);
  try {
    program.app.parse(argc, argv);
  } catch (const CLI::Success& help_or_version) {
    std::ostringstream text;
    program.app.exit(help_or_version, text, text);
    print_result(text.str());
    return Exit::fine;
  } catch (const CLI::RequiredError&) {
    // A misspelt option is why something is missing, or at least worth saying first.
    refuse_extras(program.app);
    for (const CLI::App* command : program.app.get_subcommands()) refuse_extras(*command);
    throw;
  }
  refuse_extras(program.app);
  if (program.app.get_subcommands().empty()) {
    say(program.app.help());
    return Exit::wrong_input;
  }
  const CLI::App& command = *program.app.get_subcommands().front();
  refuse_extras(command);
  try {
    if (const auto exit = answer_of_other_kind(command)) return *exit;
    return program.actions.at(command.get_name())();
  } catch (const config::InputError& error) {
    throw as_given(error, command);
  }
}

}  // namespace

int run(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // a file beyond the user's limit is reported as a disk that is full
  Exit exit = Exit::internal;
  try {
    talk_on_standard_error();
    exit = run_command(argc, argv);
  } catch (const CLI::ParseError& error) {
    say(fmt::format("error: {}\nrehearse --help and rehearse COMMAND --help show what is possible\n", error.what()));
    exit = Exit::wrong_input;
  } catch (const config::InputError& error) {
    say(std::string(error.what()) + '\n');
    exit = Exit::wrong_input;
  } catch (const std::exception& error) {
    say(fmt::format("internal error: {}\nThis is a bug in rehearse; please report it with the job that shows it.\n", error.what()));
  }
  return static_cast<int>(exit);
}

}  // namespace rehearse::cli
