#include "tests/cli/program.hpp"
#include "places.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace rehearse::cli {
namespace {

namespace fs = std::filesystem;

int shell_code(int status) {
  if (WIFSIGNALED(status)) return 128 + WTERMSIG(status);
  return WEXITSTATUS(status);
}

// LeakSanitizer's own thread crashes at a program's end, rarely (google/sanitizers issue 1353): such a run said nothing.
bool checker_crashed(const Outcome& outcome) { return outcome.err.find("Tracer caught signal") != std::string::npos; }

Outcome run_shell_once(const std::string& command, const fs::path& folder) {
  const TemporaryFolder streams;
  const fs::path script = streams.path() / "script", out = streams.path() / "out", err = streams.path() / "err";
  std::ofstream(script) << "rehearse='" REHEARSE_BINARY "'\ncd '" << folder.string() << "'\n" << command << '\n';
  const std::string line = "bash '" + script.string() + "' >'" + out.string() + "' 2>'" + err.string() + "' </dev/null";
  const int code = shell_code(std::system(line.c_str()));
  return {code, content_of(out), content_of(err)};
}

}  // namespace

Outcome run_shell(const std::string& command, const fs::path& folder) {
  const Outcome outcome = run_shell_once(command, folder);
  return checker_crashed(outcome) ? run_shell_once(command, folder) : outcome;
}

std::string content_of(const fs::path& file) {
  std::ostringstream text;
  text << std::ifstream(file, std::ios::binary).rdbuf();
  return text.str();
}

TemporaryFolder::TemporaryFolder() {
  std::string name = (fs::path(testing::TempDir()) / "rehearse-cli-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make " + name);
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;  // a folder left behind fails no test
  fs::remove_all(path_, ignored);
}

Outcome run_program(const std::string& arguments) {
  const TemporaryFolder folder;
  return run_shell("exec \"$rehearse\" " + arguments, folder.path());
}

}  // namespace rehearse::cli
