#include "sim/cli/said_option.hpp"

#include <CLI/App.hpp>
#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace rehearse::cli {
namespace {

constexpr std::string_view set_source = "--set ";

struct SaidKey {
  std::string_view option, key;
};
constexpr std::array<SaidKey, 8> said_keys{{{"--goal", "tune.goal"},
                                            {"--keep", "tune.keep"},
                                            {"--confirm", "tune.confirm"},
                                            {"--memory", "tune.memory"},
                                            {"--price", "tune.price"},
                                            {"--step", "training.step"},
                                            {"--faults", "faults"},
                                            {"--fault", "simulation.faults"}}};

std::vector<std::string> given(const CLI::App& command, std::string_view option) {
  const CLI::Option* found = command.get_option_no_throw(std::string(option));
  return found == nullptr ? std::vector<std::string>{} : found->results();
}

// The key, with what stands below it, is the option: "tune.goal[0] cannot be 'x'".
std::string of_option(std::string message, const SaidKey& said) {
  const std::size_t begin = message.find(said.key);
  if (begin == std::string::npos) return std::string(said.option) + ": " + message;
  const std::size_t end = message.find_first_of(" :", begin);
  return message.replace(begin, std::min(end, message.size()) - begin, said.option);
}

}  // namespace

config::InputError as_given(const config::InputError& error, const CLI::App& command) {
  const std::string& file = error.where().file;
  if (!file.starts_with(set_source)) return error;
  const std::string setting = file.substr(set_source.size()), key = setting.substr(0, setting.find('='));
  const std::vector<std::string> sets = given(command, "--set");
  if (std::ranges::find(sets, setting) != sets.end()) return error;
  for (const std::string& sweep : given(command, "--sweep")) {
    if (sweep.starts_with(key + "=")) return {{"--sweep " + sweep, 0, 0}, error.message(), {}, error.hint()};
  }
  const auto said = std::ranges::find(said_keys, key, &SaidKey::key);
  if (said == said_keys.end() || given(command, said->option).empty()) return error;
  return config::InputError(of_option(error.message(), *said), error.hint());
}

}  // namespace rehearse::cli
