// The folder given by -o. All its files appear together and whole, or none does.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/report/reporter.hpp"

namespace rehearse::sim {

class OutputFolder {
 public:
  // Throws config::InputError when the path is a file or cannot be written to. Creates nothing yet, so that work in vain leaves no folder.
  explicit OutputFolder(std::string path);

  // Writes every file that some reporter has for this report: each beside its place, then all are renamed. Signals that ask the program to
  // end: see WholeFiles. Throws config::InputError when the disk is full or refuses; nothing is left of the new files and folders then.
  // Returns the paths in order of the reporters' names.
  std::vector<std::string> write(const Report& report) const;

  // Paths of reporters' files in the folder that this report does not write: what an earlier command left there says something else.
  [[nodiscard]] std::vector<std::string> left_over(const Report& report) const;

  struct File {
    std::string name;
    std::function<void(std::ostream&)> writer;
  };
  // The same of files that the caller names, one after the other.
  std::vector<std::string> write(const std::vector<File>& files) const;

 private:
  std::string path_;
};

}  // namespace rehearse::sim
