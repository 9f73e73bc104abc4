// Published files with something cut off, doubled, exchanged or broken in them, at random with a fixed seed: imported or refused, nothing
// else.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "places.hpp"
#include "tests/import/import_file.hpp"

namespace rehearse::sim::testing {
namespace {

namespace fs = std::filesystem;

const fs::path published = fs::path(REHEARSE_SOURCE_DIR) / "tests/import/published";

std::vector<std::string> formats_of(const std::string& ending) {
  if (ending == ".sh" || ending == ".slurm") return {"megatron"};
  if (ending == ".toml") return {"torchtitan"};
  if (ending == ".json") return {"deepspeed", "hf"};
  if (ending == ".xml") return {"nccl-topology"};
  if (ending == ".txt") return {"nvidia-smi", "nccl-tests"};
  if (ending == ".yaml") return {"megatron", "megatron-bridge", "nemo", "nanotron", "llm-foundry"};
  return {};
}

std::string content_of(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

std::string broken(std::string text, std::mt19937& random) {
  const auto draw = [&](std::size_t below) {
    return std::uniform_int_distribution<std::size_t>(0, std::max<std::size_t>(below, 1) - 1)(random);
  };
  static const std::vector<std::string> words{
      "\"", "'",   "(", ")",  "${", "}", "$((", "\\",    "\n", "[",  "{", "-1", "999999999999999999999",
      "0",  "nan", "<", "/>", "--", "*", "if ", "\x1b[", "\t", ": ", ","};
  for (std::size_t times = 1 + draw(4); times > 0 && !text.empty(); --times) {
    const std::size_t at = draw(text.size()), length = draw(40);
    switch (draw(5)) {
      case 0:
        text.resize(at);
        break;
      case 1:
        text.erase(at, length);
        break;
      case 2:
        text.insert(at, words[draw(words.size())]);
        break;
      case 3:
        text.insert(at, text.substr(draw(text.size()), length));
        break;
      default:
        text[at] = static_cast<char>(draw(256));
    }
  }
  return text;
}

TEST(Importers, ReadOrRefuse) {
  const Settings settings{{"cluster", "dgx-h100-ndr400"}, {"gpus", "64"}};
  std::mt19937 random(20260101);
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(published)) files.push_back(entry.path());
  std::ranges::sort(files);
  int refused = 0, imported = 0;
  for (const fs::path& file : files) {
    const fs::path copy = fs::path(::testing::TempDir()) / ("survive-" + std::to_string(getpid()) + file.extension().string());
    for (const std::string& format : formats_of(file.extension().string())) {
      for (int i = 0; i < 15; ++i) {
        std::ofstream(copy, std::ios::binary) << broken(content_of(file), random);
        const auto start = std::chrono::steady_clock::now();
        try {
          static_cast<void>(import_file(format, copy.string(),
                                        format.starts_with("n") && format != "nemo" && format != "nanotron" ? Settings{} : settings));
          ++imported;
        } catch (const config::InputError&) {
          ++refused;
        }
        EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5)) << file << " as " << format << ", " << i;
      }
    }
    fs::remove(copy);
  }
  EXPECT_GT(refused, 50);
  EXPECT_GT(imported, 5);
}

}  // namespace
}  // namespace rehearse::sim::testing
