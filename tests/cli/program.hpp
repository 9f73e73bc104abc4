// Runs the real program as a shell would.
#pragma once

#include <filesystem>
#include <string>

namespace rehearse::cli {

struct Outcome {
  int code = 0;  // as a shell reports it: 128 + signal when a signal ended the program
  std::string out, err;
};

// `command` is run by bash; $rehearse in it is the program, the working folder is the given one.
[[nodiscard]] Outcome run_shell(const std::string& command, const std::filesystem::path& folder);

[[nodiscard]] std::string content_of(const std::filesystem::path& file);

// An empty folder of this test, removed at the end.
class TemporaryFolder {
 public:
  TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder();
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// $rehearse with these arguments, in a folder of its own.
[[nodiscard]] Outcome run_program(const std::string& arguments);

}  // namespace rehearse::cli
