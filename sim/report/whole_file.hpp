// Files that appear whole or not at all: written under another name beside their place, then renamed, all together.
#pragma once

#include <signal.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <list>
#include <string>
#include <vector>

#include "config/input_error.hpp"

namespace rehearse::sim {

// "cannot write to 'PATH': WHY"
[[nodiscard]] config::InputError cannot_write(const std::filesystem::path& path, std::string_view why, std::string_view hint = {});

// Holds back the signals that end the program (INT, TERM, HUP); they end it when the object goes.
class SignalsHeld {
 public:
  SignalsHeld();
  SignalsHeld(const SignalsHeld&) = delete;
  SignalsHeld& operator=(const SignalsHeld&) = delete;
  ~SignalsHeld();

  // Whether one waits.
  [[nodiscard]] bool waiting() const;
  // From now on they are held until the program has ended by itself.
  void until_the_end() { to_the_end_ = true; }

 private:
  sigset_t before_{};
  bool to_the_end_ = false;
};

// A file on its way to its place, as .NAME.PID.partial beside it; gone unless put there. It is locked (flock) while its writer lives: what
// writers that were killed left behind is removed by the next one that writes the same file, what others still write is not.
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
  int lock_ = -1;  // descriptor
};

// The files of one run: either all get to their places or none. A signal that came before they were put in place ends the program without
// them; a later one comes too late, the run has succeeded.
class WholeFiles {
 public:
  explicit WholeFiles(SignalsHeld& signals) : signals_(signals) {}

  void write(const std::filesystem::path& place, const std::function<void(std::ostream&)>& writer);
  // The paths in the order of writing; none when a signal waits, which ends the program when its SignalsHeld goes.
  std::vector<std::string> put_in_place();

 private:
  SignalsHeld& signals_;
  std::list<WholeFile> files_;
};

}  // namespace rehearse::sim
