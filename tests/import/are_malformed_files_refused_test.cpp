// malformed/FORMAT.txt: files that are no files of their format, or ask for what is not simulated, and what is said of them. Nothing of
// them is taken, and none of them is run.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>

#include "places.hpp"
#include "sim/import/importer.hpp"
#include "tests/config/refusal.hpp"
#include "tests/import/import_file.hpp"

namespace rehearse::sim::testing {
namespace {

struct Malformed {
  std::string format, name, text, message;
  Settings settings;
};

// "\x00" as the byte.
std::string bytes_of(std::string text) {
  for (std::size_t at = text.find("\\x"); at != std::string::npos; at = text.find("\\x", at + 1)) {
    text.replace(at, 4, 1, static_cast<char>(std::stoi(text.substr(at + 2, 2), nullptr, 16)));
  }
  return text;
}

// "Given beside the file: a=b, c=d."
Settings settings_in(const std::string& line) {
  const std::string mark = "Given beside the file: ";
  std::string list = line.substr(line.find(mark) + mark.size());
  list.pop_back();
  Settings settings;
  for (std::size_t at = 0; list != "nothing" && at < list.size();) {
    const std::size_t end = std::min(list.find(", ", at), list.size()), equals = list.find('=', at);
    settings.emplace_back(list.substr(at, equals - at), list.substr(equals + 1, end - equals - 1));
    at = end + 2;
  }
  return settings;
}

std::vector<Malformed> all_malformed() {
  std::vector<Malformed> all;
  for (const std::string& format : ImporterRegistry::names()) {
    std::ifstream in(std::string(REHEARSE_SOURCE_DIR) + "/tests/import/malformed/" + format + ".txt");
    std::string* part = nullptr;
    Settings settings;
    for (std::string line; std::getline(in, line);) {
      if (line.starts_with("# What ")) settings = settings_in(line);
      if (line.starts_with("=== ")) {
        const bool bare = line == "=== nothing-of-the-ports";
        all.push_back({format, line.substr(4), "", "", bare ? Settings{} : settings});
        part = &all.back().text;
      } else if (line == "--- is refused") {
        part = &all.back().message;
      } else if (part != nullptr) {
        *part += line + "\n";
      }
    }
  }
  for (Malformed& one : all) {
    one.text = bytes_of(one.text);
    while (one.message.ends_with('\n')) one.message.pop_back();
  }
  return all;
}

const std::map<std::string, std::string> endings{{"megatron", "sh"},       {"torchtitan", "toml"}, {"deepspeed", "json"}, {"hf", "json"},
                                                 {"nccl-topology", "xml"}, {"nvidia-smi", "txt"},  {"nccl-tests", "txt"}};

class AreMalformedFilesRefused : public ::testing::TestWithParam<Malformed> {};

TEST_P(AreMalformedFilesRefused, WithTheWholeMessage) {
  const Malformed& one = GetParam();
  const std::filesystem::path folder = std::filesystem::path(::testing::TempDir()) / ("rehearse-import-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  std::filesystem::current_path(folder);
  const auto ending = endings.find(one.format);
  const std::string file = "file." + (ending == endings.end() ? "yaml" : ending->second);
  std::ofstream(file, std::ios::binary) << one.text;
  std::string message = config::refusal_of([&] { return import_file(one.format, file, one.settings).finished; });
  std::string printed;  // as the corpus keeps it: without blanks at line ends
  for (const char c : message + "\n") {
    while (c == '\n' && printed.ends_with(' ')) printed.pop_back();
    printed += c;
  }
  printed.pop_back();
  EXPECT_EQ(printed, one.message);
  std::filesystem::current_path(folder.parent_path());
  std::filesystem::remove_all(folder);
}

INSTANTIATE_TEST_SUITE_P(Corpus, AreMalformedFilesRefused, ::testing::ValuesIn(all_malformed()), [](const auto& info) {
  std::string name = info.param.format + "_" + info.param.name;
  std::ranges::replace(name, '-', '_');
  return name;
});

TEST(Malformed, AtLeastEightOfEachFormat) {
  std::map<std::string, int> count;
  for (const Malformed& one : all_malformed()) ++count[one.format];
  for (const std::string& format : ImporterRegistry::names()) EXPECT_GE(count[format], 8) << format;
}

}  // namespace
}  // namespace rehearse::sim::testing
