#include "tests/fuzz/target.hpp"

#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace rehearse::fuzz {
namespace {

namespace fs = std::filesystem;

// Removed when the process ends by itself.
struct ScratchFolder {
  fs::path path = fs::temp_directory_path() / ("rehearse-fuzz-" + std::to_string(getpid()));
  ScratchFolder() { fs::create_directories(path); }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
};

}  // namespace

void read_or_refuse(const Target& target, const std::string& input) {
  try {
    target.read(input);
  } catch (const config::InputError& refused) {
    if (refused.message().empty()) throw Nonsense("a refusal without a word");
  }
}

std::string scratch_file(const std::string& name, const std::string& content) {
  static const ScratchFolder folder;
  const fs::path path = folder.path / name;
  std::ofstream(path, std::ios::binary) << content;
  return path.string();
}

}  // namespace rehearse::fuzz
