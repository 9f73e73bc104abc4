#include "tests/job/corpus.hpp"
#include "places.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace rehearse::sim {
namespace {

// \xNN as the byte, a last backslash as nothing in place of the line's end.
std::string bytes_of(std::string text) {
  if (text.ends_with("\\\n")) text.resize(text.size() - 2);
  constexpr std::size_t digits = 2, length = 2 + digits;
  for (std::size_t at = text.find("\\x"); at != std::string::npos; at = text.find("\\x", at + 1)) {
    text.replace(at, length, 1, static_cast<char>(std::stoi(text.substr(at + 2, digits), nullptr, 16)));
  }
  return text;
}

void read_topic(const std::filesystem::path& path, std::vector<MalformedJob>& all) {
  std::ifstream in(path);
  std::string* part = nullptr;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("=== ")) {
      all.push_back({path.stem().string(), line.substr(4), "", ""});
      part = &all.back().job;
    } else if (line == "--- is refused") {
      part = &all.back().message;
    } else if (part != nullptr) {
      *part += line + "\n";
    }
  }
}

}  // namespace

std::vector<MalformedJob> malformed_jobs() {
  std::vector<std::filesystem::path> topics;
  for (const auto& entry : std::filesystem::directory_iterator(REHEARSE_SOURCE_DIR "/tests/job/malformed")) topics.push_back(entry.path());
  std::ranges::sort(topics);
  std::vector<MalformedJob> all;
  for (const auto& topic : topics) read_topic(topic, all);
  for (MalformedJob& one : all) {
    one.job = bytes_of(one.job);
    while (one.message.ends_with('\n')) one.message.pop_back();
    one.message = bytes_of(one.message);
  }
  return all;
}

}  // namespace rehearse::sim
