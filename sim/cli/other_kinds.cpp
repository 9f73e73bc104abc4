#include "sim/cli/other_kinds.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <set>

#include "sim/cli/job_options.hpp"
#include "sim/cli/progress_bar.hpp"
#include "sim/kind/job_kind.hpp"

namespace rehearse::cli {
namespace {

using sim::JobKindRegistry;
using sim::KindOption;

// Those that every command about a job has, which JobOptions sees to.
const std::set<std::string>& common_options() {
  static const std::set<std::string> common{"JOB", "set", "seed", "json", "output", "html", "help"};
  return common;
}

// Without dashes.
std::string name_of(const CLI::Option& option) { return option.get_lnames().empty() ? option.get_name() : option.get_lnames().front(); }

std::vector<KindOption> options_of(const std::string& kind, const std::string& command) {
  const auto commands = JobKindRegistry::get(kind).commands();
  const auto found = commands.find(command);
  return found == commands.end() ? std::vector<KindOption>{} : found->second;
}

std::vector<std::string> kinds_with(const std::string& command, const std::string& option) {
  std::vector<std::string> kinds;
  for (const std::string& kind : JobKindRegistry::names()) {
    const auto options = options_of(kind, command);
    if (std::ranges::find(options, option, &KindOption::name) != options.end()) kinds.push_back(kind);
  }
  return kinds;
}

// What was given beside the common options.
std::vector<const CLI::Option*> given_options(const CLI::App& command) {
  return command.get_options([](const CLI::Option* option) { return option->count() > 0 && !common_options().contains(name_of(*option)); });
}

// Options that only other kinds have are the ones that were declared for them: they write into nothing.
void refuse_options_of_kinds(const CLI::App& command) {
  for (const CLI::Option* option : given_options(command)) {
    if (option->get_group() != "Options of other kinds of job") continue;
    throw config::InputError(fmt::format("--{} is for jobs with the section '{}', and this one is a training job", name_of(*option),
                                         fmt::join(kinds_with(command.get_name(), name_of(*option)), "' or '")));
  }
}

std::map<std::string, std::vector<std::string>> options_for(const std::string& kind, const CLI::App& command) {
  const std::vector<KindOption> known = options_of(kind, command.get_name());
  std::vector<std::string> names;
  names.reserve(known.size());
  for (const KindOption& option : known) names.push_back("--" + option.name);
  std::map<std::string, std::vector<std::string>> given;
  for (const CLI::Option* option : given_options(command)) {
    const std::string name = name_of(*option);
    if (std::ranges::find(known, name, &KindOption::name) == known.end()) {
      throw config::InputError(fmt::format("--{} is not for jobs with the section '{}'", name, kind),
                               names.empty() ? "" : fmt::format("beside the common ones it takes {}", fmt::join(names, ", ")));
    }
    given[name] = option->results();
  }
  return given;
}

Exit answer(const std::string& kind, const CLI::App& command) {
  const sim::JobKind& other = sim::kind_with_answer(kind, command.get_name());
  JobOptions options = JobOptions::of(command);
  sim::KindRequest request = options.request();
  request.options = options_for(kind, command);
  const sim::KindAnswer found = [&] {
    ProgressBar bar(command.get_name());
    request.progress = [&](double share) { bar.update(share); };
    return other.answer(command.get_name(), request);
  }();
  options.deliver(found.report);
  return found.yes ? Exit::fine : Exit::answer_is_no;
}

}  // namespace

void declare_options_of_kinds(const std::string& command, CLI::App& app) {
  for (const std::string& kind : JobKindRegistry::names()) {
    for (const KindOption& option : options_of(kind, command)) {
      const std::string name = "--" + option.name;
      if (app.get_option_no_throw(name) != nullptr) continue;
      CLI::Option* declared = option.takes.empty() ? app.add_flag(name) : app.add_option(name)->type_name(option.takes)->expected(1);
      declared->description(option.means + fmt::format(" (jobs with the section '{}')", kind))->group("Options of other kinds of job");
    }
  }
}

std::optional<Exit> answer_of_other_kind(const CLI::App& command) {
  const CLI::Option* job = command.get_option_no_throw("JOB");
  if (job == nullptr || job->count() == 0) return {};
  const std::string kind = sim::kind_of(job_named(job->as<std::string>()));
  if (!kind.empty()) return answer(kind, command);
  refuse_options_of_kinds(command);
  return {};
}

}  // namespace rehearse::cli
