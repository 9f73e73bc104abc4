// Files imported as the command does it.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/import/finish.hpp"

namespace rehearse::sim::testing {

using Settings = std::vector<std::pair<std::string, std::string>>;

struct ImportedFile {
  Draft draft;
  FinishedImport finished;
};

[[nodiscard]] ImportedFile import_file(const std::string& format, const std::string& path, const Settings& settings,
                                       const std::string& part = "");
// Of tests/import/published.
[[nodiscard]] ImportedFile import_published(const std::string& format, const std::string& file, const Settings& settings,
                                            const std::string& part = "");

// A value of the document on one line, "" where there is none.
[[nodiscard]] std::string value_of(const ImportedFile& file, const std::string& key);
// Fails the test where a key has another value.
void expect(const ImportedFile& file, const Settings& values);

// Whether a line holds the text.
[[nodiscard]] bool says(const std::vector<std::string>& lines, const std::string& text);

}  // namespace rehearse::sim::testing
