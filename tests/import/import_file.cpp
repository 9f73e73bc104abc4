#include "tests/import/import_file.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "places.hpp"
#include "sim/import/importer.hpp"

namespace rehearse::sim::testing {

ImportedFile import_file(const std::string& format, const std::string& path, const Settings& settings, const std::string& part) {
  Draft draft = ImporterRegistry::get(format).read({path, part});
  FinishedImport finished = finish_import(draft, settings, "imported");
  return {std::move(draft), std::move(finished)};
}

ImportedFile import_published(const std::string& format, const std::string& file, const Settings& settings, const std::string& part) {
  return import_file(format, std::string(REHEARSE_SOURCE_DIR) + "/tests/import/published/" + file, settings, part);
}

std::string value_of(const ImportedFile& file, const std::string& key) {
  const auto found = file.finished.document.find_path(key);
  return found ? config::one_line(*found) : "";
}

void expect(const ImportedFile& file, const Settings& values) {
  for (const auto& [key, value] : values) EXPECT_EQ(value_of(file, key), value) << key;
}

bool says(const std::vector<std::string>& lines, const std::string& text) {
  return std::ranges::any_of(lines, [&](const std::string& line) { return line.find(text) != std::string::npos; });
}

}  // namespace rehearse::sim::testing
