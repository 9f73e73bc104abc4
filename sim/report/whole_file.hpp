// Files that appear whole or not at all: written under another name beside their place, then renamed.
#pragma once

#include <signal.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include "config/input_error.hpp"

namespace rehearse::sim {

// "cannot write to 'PATH': WHY"
[[nodiscard]] config::InputError cannot_write(const std::filesystem::path& path, std::string_view why, std::string_view hint = {});

// Holds back the signals that end the program (INT, TERM, HUP) while files are being replaced.
class SignalsHeld {
 public:
  SignalsHeld();
  SignalsHeld(const SignalsHeld&) = delete;
  SignalsHeld& operator=(const SignalsHeld&) = delete;
  ~SignalsHeld();

 private:
  sigset_t before_{};
};

// A file on its way to its place; gone unless put there.
class WholeFile {
 public:
  explicit WholeFile(std::filesystem::path place);
  WholeFile(const WholeFile&) = delete;
  WholeFile& operator=(const WholeFile&) = delete;
  ~WholeFile();

  // Both throw config::InputError when the disk is full or refuses.
  void write(const std::function<void(std::ostream&)>& writer);
  std::string put_in_place();  // returns the path

 private:
  std::filesystem::path place_, aside_;
  std::ofstream stream_;
};

}  // namespace rehearse::sim
