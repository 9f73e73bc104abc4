#include "sim/cli/terminal.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "config/input_error.hpp"

namespace rehearse::cli {
namespace {

std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

}  // namespace

bool is_terminal(Stream stream) { return isatty(static_cast<int>(stream)) == 1; }

bool colour_allowed(Stream stream) { return is_terminal(stream) && environment("NO_COLOR").empty() && environment("TERM") != "dumb"; }

void print_result(const std::string& text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  if (!written && errno != EPIPE) throw config::InputError(std::string("cannot write to standard output: ") + std::strerror(errno));
}

}  // namespace rehearse::cli
