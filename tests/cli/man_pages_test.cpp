// The manual pages say what --help says: every command has one, with every option and argument.
#include <gtest/gtest.h>

#include <sstream>

#include "sim/cli/command.hpp"
#include "sim/cli/program_app.hpp"
#include "sim/job/job_keys.hpp"
#include "tests/cli/program.hpp"

namespace rehearse::cli {
namespace {

// As a reader sees it: without fonts, escapes and requests.
std::string plain(std::string page) {
  const auto drop = [&](std::string_view what, std::string_view with) {
    for (std::size_t at = 0; (at = page.find(what, at)) != std::string::npos; at += with.size()) page.replace(at, what.size(), with);
  };
  for (const char* font : {"\\fB", "\\fI", "\\fR"}) drop(font, "");
  drop("\\-", "-");
  drop("\\&", "");
  drop("\\e", "\\");
  return page;
}

std::string page_of(const std::string& topic) {
  const Outcome outcome = run_program("man " + topic);
  EXPECT_EQ(outcome.code, 0) << topic << outcome.err;
  EXPECT_TRUE(outcome.out.starts_with(".TH ")) << topic;
  return plain(outcome.out);
}

// "  -o,--output FILE   Write ...": the words that begin with a hyphen, before the text.
std::vector<std::string> options_in_help(const std::string& command) {
  std::istringstream help(run_program(command + " --help").out);
  std::vector<std::string> names;
  for (std::string line; std::getline(help, line);) {
    if (!line.starts_with("  -")) continue;
    std::istringstream first(line);
    std::string word, name;
    first >> word;
    for (std::istringstream parts(word); std::getline(parts, name, ',');) names.push_back(name);
  }
  return names;
}

TEST(ManPages, EveryCommandHasOneWithEveryOptionOfItsHelp) {
  const std::string program = page_of("");
  for (const std::string& command : CommandRegistry::names()) {
    EXPECT_NE(program.find("rehearse-" + command + "(1)"), std::string::npos);
    const std::string page = page_of(command);
    const std::vector<std::string> options = options_in_help(command);
    EXPECT_GE(options.size(), 2U) << command;  // -h and --help at least
    for (const std::string& option : options) EXPECT_NE(page.find(option), std::string::npos) << command << ' ' << option;
  }
}

TEST(ManPages, EveryKeyOfAJobIsInItsPage) {
  const std::string page = page_of("job");
  const config::Shape shape = sim::job_shape();
  for (const config::Place& place : config::all_places(shape))
    EXPECT_NE(page.find("\n" + place.path + "\n"), std::string::npos) << place.path;
}

TEST(ManPages, AnUnknownCommandIsRefusedWithASuggestion) {
  const Outcome outcome = run_program("man predikt");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("predict"), std::string::npos);
}

}  // namespace
}  // namespace rehearse::cli
