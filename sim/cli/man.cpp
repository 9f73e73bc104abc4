// rehearse man: the manual pages, from the options as they are declared.
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <algorithm>

#include "sim/cli/command.hpp"
#include "sim/cli/program_app.hpp"
#include "sim/cli/terminal.hpp"
#include "sim/job/job_keys.hpp"
#include "sim/report/version.hpp"

namespace rehearse::cli {
namespace {

// Text of a page: a line that begins with a point or a quote would be a request, a backslash an escape, a bare hyphen a dash.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      if ((c == '.' || c == '\'') && (out.empty() || out.back() == '\n')) out += "\\&";
      out += c;
    }
  }
  return out;
}

std::string head(const std::string& name, int section, std::string_view summary) {
  std::string title = name;
  std::ranges::transform(title, title.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return fmt::format(".TH {} {} \"\" \"rehearse {}\" \"Rehearse\"\n.SH NAME\n{} \\- {}\n", escaped(title), section, sim::version(),
                     escaped(name), escaped(summary));
}

std::string literal(std::string_view text) { return ".nf\n" + escaped(text) + ".fi\n"; }

std::string names_of(const CLI::Option& option) {
  std::string names;
  for (const std::string& name : option.get_snames()) names += fmt::format("{}\\fB\\-{}\\fR", names.empty() ? "" : ", ", name);
  for (const std::string& name : option.get_lnames()) names += fmt::format("{}\\fB\\-\\-{}\\fR", names.empty() ? "" : ", ", escaped(name));
  if (option.get_positional()) names = fmt::format("\\fI{}\\fR", escaped(option.get_name()));
  const bool takes = !option.get_positional() && option.get_items_expected_max() > 0;
  return takes && !option.get_type_name().empty() ? names + fmt::format(" \\fI{}\\fR", escaped(option.get_type_name())) : names;
}

std::string options_section(const CLI::App& command) {
  std::string text = ".SH OPTIONS\n";
  for (const bool arguments : {true, false}) {
    for (const CLI::Option* option : command.get_options()) {
      if (option->get_positional() != arguments || option->get_group().empty()) continue;
      text += fmt::format(".TP\n{}\n{}\n", names_of(*option), escaped(option->get_description()));
    }
  }
  return text;
}

std::string synopsis(const std::string& name, const CLI::App& command) {
  std::string text = fmt::format(".SH SYNOPSIS\n.B rehearse {}\n", escaped(name));
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_positional()) text += fmt::format(".I {}\n", escaped(option->get_name()));
  }
  return text + "[options]\n";
}

// Formats and examples, as --help shows them below the options.
std::string page_of(const std::string& name, const CLI::App& command) {
  return head("rehearse-" + name, 1, command.get_description()) + synopsis(name, command) + ".SH DESCRIPTION\n" +
         escaped(command.get_description()) + ".\n" + options_section(command) + ".SH EXAMPLES\n" + literal(command.get_footer()) +
         ".SH SEE ALSO\n\\fBrehearse\\fR(1), \\fBrehearse\\-job\\fR(5)\n";
}

std::string page_of_program(const CLI::App& app) {
  std::string text = head("rehearse", 1, "simulate LLM training and serving before paying for it") +
                     ".SH SYNOPSIS\n.B rehearse\n.I COMMAND\n[options]\n.SH DESCRIPTION\n" + escaped(app.get_description()) +
                     "\n.SH COMMANDS\n";
  for (const std::string& name : CommandRegistry::names()) {
    text += fmt::format(".TP\n\\fBrehearse\\-{}\\fR(1)\n{}\n", escaped(name), escaped(CommandRegistry::get(name).summary()));
  }
  return text + options_section(app) + ".SH EXAMPLES\n" + literal(app.get_footer());
}

std::string page_of_jobs() {
  std::string text = head("rehearse-job", 5, "keys of a job file") +
                     ".SH DESCRIPTION\nA job is a YAML file: a model, a cluster, a plan. Its keys, by their dotted paths:\n.SH KEYS\n";
  const config::Shape shape = sim::job_shape();
  for (const config::Place& place : config::all_places(shape)) {
    const config::Parameter& key = *place.parameter;
    const std::string otherwise = key.required ? "required" : key.otherwise.empty() ? "" : "default: " + key.otherwise;
    text += fmt::format(".TP\n\\fB{}\\fR\n{}\n.br\n{}{}\n", escaped(place.path), escaped(key.means.empty() ? place.path : key.means),
                        escaped(describe(key.shape)), otherwise.empty() ? "" : "; " + escaped(otherwise));
  }
  return text + ".SH SEE ALSO\n\\fBrehearse\\fR(1)\n";
}

Exit man(const std::string& topic) {
  const ProgramApp program;
  if (topic.empty()) {
    print_result(page_of_program(program.app));
  } else if (topic == "job") {
    print_result(page_of_jobs());
  } else {
    static_cast<void>(CommandRegistry::get(topic));  // an unknown one is refused with a suggestion
    print_result(page_of(topic, *program.app.get_subcommand(topic)));
  }
  return Exit::fine;
}

class Man final : public Command {
 public:
  [[nodiscard]] std::string_view summary() const override { return "Print a manual page: of the program, of a command, or of job files"; }
  [[nodiscard]] std::string_view examples() const override {
    return "Examples:\n"
           "  rehearse man | man -l -\n"
           "  rehearse man predict > rehearse-predict.1\n"
           "  rehearse man job > rehearse-job.5\n";
  }
  [[nodiscard]] Action declare(CLI::App& app) const override {
    auto topic = std::make_shared<std::string>();
    app.add_option("COMMAND", *topic, "A command, or job for the keys of job files; default: the program");
    return [topic] { return man(*topic); };
  }
};

const CommandRegistry::Registration<Man> man_registration("man");

}  // namespace
}  // namespace rehearse::cli
