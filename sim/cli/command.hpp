// One command of the program. One command, one .cpp with its registration; `rehearse --help` and the suggestions follow from the registry.
#pragma once

#include <functional>
#include <string_view>

#include "config/registry.hpp"

namespace CLI {
class App;
}

namespace rehearse::cli {

enum class Exit { fine = 0, answer_is_no = 1, wrong_input = 2, internal = 3 };

class Command {
 public:
  static constexpr std::string_view kind = "command";
  virtual ~Command() = default;

  [[nodiscard]] virtual std::string_view summary() const = 0;   // one line
  [[nodiscard]] virtual std::string_view examples() const = 0;  // shown below the options

  using Action = std::function<Exit()>;
  // Adds options and arguments to `app`. What it returns is called after they are parsed and owns what they were parsed into.
  [[nodiscard]] virtual Action declare(CLI::App& app) const = 0;
};

using CommandRegistry = config::Registry<Command>;

}  // namespace rehearse::cli
