#include "sim/cli/set_option.hpp"

#include <fmt/format.h>

#include "config/input_error.hpp"

namespace rehearse::cli {

std::pair<std::string, std::string> parse_set(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == 0 || equals == std::string::npos) {
    throw config::InputError(fmt::format("--set takes key=value, not '{}'", text), "for example --set parallel.tp=4");
  }
  return {text.substr(0, equals), text.substr(equals + 1)};
}

}  // namespace rehearse::cli
