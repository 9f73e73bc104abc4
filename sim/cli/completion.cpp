#include "sim/cli/completion.hpp"

#include <algorithm>
#include <span>

#include "config/data_dir.hpp"
#include "sim/cli/command.hpp"
#include "sim/cli/listing.hpp"
#include "sim/export/exporter.hpp"
#include "sim/import/importer.hpp"
#include "sim/job/job_keys.hpp"

namespace rehearse::cli {
namespace {

using Completions = std::vector<Completion>;
using Words = std::span<const std::string>;

void keep_those_that_begin_with(const std::string& typed, Completions& all) {
  std::erase_if(all, [&](const Completion& each) { return !each.word.starts_with(typed); });
}

Completions plain(const std::vector<std::string>& names) {
  Completions all;
  for (const std::string& name : names) all.push_back({name, ""});
  return all;
}

// Keys without the parts' own: a part is given by its name.
Completions keys() {
  Completions all;
  const config::Shape shape = sim::job_shape();
  for (const config::Place& place : config::all_places(shape)) {
    if (place.path.find('*') == std::string::npos) all.push_back({place.path + '=', place.parameter->means});
  }
  return all;
}

std::vector<std::string> ready_made_names(const std::string& key) {
  for (const sim::PartKind& part : {sim::model_part, sim::cluster_part, sim::software_part}) {
    if (key == part.what) return config::data_names(part.folder);
  }
  return {};
}

Completions values_of(const std::string& key) {
  std::vector<std::string> values = ready_made_names(key);
  const config::Shape shape = sim::job_shape();
  for (const config::Place& place : config::all_places(shape)) {
    if (place.path != key || !values.empty()) continue;
    values = config::words_of(place.parameter->shape);
  }
  Completions all;
  for (const std::string& value : values) all.push_back({key + '=' + value, ""});
  return all;
}

Completions settings(const std::string& typed) {
  const std::size_t equals = typed.find('=');
  return equals == std::string::npos ? keys() : values_of(typed.substr(0, equals));
}

// "... (rehearse list jobs)": the names of that list.
Completions listed(const std::string& description) {
  constexpr std::string_view mark = "rehearse list ";
  const std::size_t at = description.find(mark);
  if (at == std::string::npos) return {};
  const std::size_t begin = at + mark.size();
  const std::string what = description.substr(begin, description.find(')', begin) - begin);
  const std::vector<std::string> known = ListingRegistry::names();
  if (std::ranges::find(known, what) == known.end()) return {};
  Completions all;
  for (const auto& row : ListingRegistry::get(what).rows()) all.push_back({row.front().text, ""});
  return all;
}

Completions formats(const std::string& command) {
  Completions all;
  const auto add = [&](const auto& registry) {
    for (const std::string& name : registry.names()) all.push_back({name, std::string(registry.get(name).summary())});
  };
  command == "export" ? add(sim::ExporterRegistry()) : add(sim::ImporterRegistry());
  return all;
}

Completions values_of(const CLI::Option& option, const CLI::App& command, const std::string& typed) {
  if (option.get_type_name() == "KEY=VALUE") return settings(typed);
  if (option.get_name() == "FORMAT") return formats(command.get_name());
  if (option.get_name() == "WHAT") return plain(ListingRegistry::names());
  if (option.get_name() == "SHELL") return plain({"bash", "zsh", "fish"});
  if (option.get_name() == "COMMAND") return plain(CommandRegistry::names());
  return listed(option.get_description());
}

Completions options_of(const CLI::App& command) {
  Completions all;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) all.push_back({"--" + name, option->get_description()});
  }
  return all;
}

// The option whose value the word behind `word` is; nullptr where it is none.
const CLI::Option* waits_for_value(const CLI::App& command, const std::string& word) {
  if (!word.starts_with('-')) return nullptr;
  const CLI::Option* option = command.get_option_no_throw(word);
  return option != nullptr && option->get_items_expected_max() > 0 ? option : nullptr;
}

const CLI::Option* positional(const CLI::App& command, std::size_t place) {
  const CLI::Option* last = nullptr;
  for (const CLI::Option* option : command.get_options()) {
    if (!option->get_positional()) continue;
    last = option;
    if (place-- == 0) return option;
  }
  return last != nullptr && last->get_items_expected_max() > 1 ? last : nullptr;
}

Completions of_command(const CLI::App& command, Words words) {
  std::size_t place = 0;
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    const CLI::Option* option = waits_for_value(command, words[i]);
    if (option != nullptr && i + 2 == words.size()) return values_of(*option, command, words.back());
    if (option != nullptr) ++i;
    if (option == nullptr && !words[i].starts_with('-')) ++place;
  }
  if (words.back().starts_with('-')) return options_of(command);
  const CLI::Option* option = positional(command, place);
  return option == nullptr ? Completions() : values_of(*option, command, words.back());
}

}  // namespace

Completions completions(const CLI::App& app, const std::vector<std::string>& words) {
  if (words.empty()) return {};
  Completions all;
  if (words.size() == 1) {
    for (const std::string& name : CommandRegistry::names()) all.push_back({name, std::string(CommandRegistry::get(name).summary())});
    if (words.back().starts_with('-')) all = options_of(app);
  } else {
    const std::vector<std::string> known = CommandRegistry::names();
    if (std::ranges::find(known, words.front()) == known.end()) return {};
    all = of_command(*app.get_subcommand(words.front()), Words(words).subspan(1));
  }
  keep_those_that_begin_with(words.back(), all);
  return all;
}

std::string completions_text(const CLI::App& app, const std::vector<std::string>& words) {
  std::string text;
  for (const Completion& each : completions(app, words)) text += each.word + (each.means.empty() ? "" : '\t' + each.means) + '\n';
  return text;
}

}  // namespace rehearse::cli
