// libyaml is held against yaml-cpp: what it reads is the same tree, and what yaml-cpp refuses it leaves alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "config/parse_quickly.hpp"
#include "config/text_check.hpp"
#include "places.hpp"

namespace rehearse::config {
namespace {

std::string contents(const std::filesystem::path& path) {
  std::ostringstream out;
  out << std::ifstream(path, std::ios::binary).rdbuf();
  return out.str();
}

// Texts of at most so many bytes.
std::vector<std::filesystem::path> files(std::size_t largest) {
  std::vector<std::filesystem::path> all;
  for (const char* folder : {"workloads", "platforms", "tests"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(std::filesystem::path(REHEARSE_SOURCE_DIR) / folder)) {
      const bool text = entry.path().extension() == ".yaml" || entry.path().extension() == ".json" || entry.path().extension() == ".txt" ||
                        entry.path().string().find("/fuzz/") != std::string::npos;
      if (entry.is_regular_file() && text && entry.file_size() <= largest) all.push_back(entry.path());
    }
  }
  std::ranges::sort(all);
  return all;
}

std::string tree_text(const Tree& tree) {
  std::string out = fmt::format("{}:{}:{} [{}] ({}:{}:{}) {} <{}>\n", static_cast<int>(tree->kind), tree->line, tree->column, tree->path,
                                tree->key, tree->key_line, tree->key_column, tree->quoted, tree->text);
  for (const Tree& child : tree->children) out += tree_text(child);
  return out;
}

// Whether the quick parser reads the text; a failure where yaml-cpp sees it otherwise.
bool is_read_alike(const std::string& text, const std::string& name, std::size_t skipped = 0) {
  const auto source = std::make_shared<const Source>(Source{name, ".", split_lines_of(std::string(skipped, 'x') + text)});
  try {
    check_text(text, *source);
  } catch (const InputError&) {
    return false;
  }
  const Tree quick = parse_quickly(text, source, skipped, "a.b");
  if (!quick) return false;
  try {
    const Tree known = parse_with_yaml_cpp(text, source, skipped, "a.b");
    EXPECT_EQ(tree_text(quick), tree_text(known)) << name << "\n" << text;
  } catch (const InputError& error) {
    if (quick->kind != Node::Impl::Kind::null) ADD_FAILURE() << "yaml-cpp refuses: " << error.what() << "\n" << text;
  }
  return true;
}

TEST(DoBothParsersReadAlike, every_file_of_the_tree) {
  std::size_t read = 0;
  for (const auto& path : files(std::size_t{4} << 20U)) read += is_read_alike(contents(path), path.string()) ? 1 : 0;
  EXPECT_GE(read, 150U);
}

// All shipped files take the quick one: loading a job depends on it.
TEST(DoBothParsersReadAlike, shipped_files_are_read_by_the_quick_one) {
  for (const char* folder : {"workloads", "platforms"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(std::filesystem::path(REHEARSE_SOURCE_DIR) / folder)) {
      if (entry.path().extension() != ".yaml") continue;
      EXPECT_TRUE(is_read_alike(contents(entry.path()), entry.path().string())) << entry.path();
    }
  }
}

// One to four bytes or lines changed, in places that the seed draws.
std::string changed(std::string text, const std::vector<std::string>& others, std::mt19937_64& random) {
  static constexpr std::string_view bytes = "  \n\n::,-[]{}#'\"\\?&*!|>%@~.a1\t";
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % std::max<std::size_t>(n, 1)); };
  for (std::size_t changes = 1 + below(4); changes > 0; --changes) {
    const std::size_t at = below(text.size());
    switch (below(5)) {
      case 0:
        text.insert(at, 1, bytes[below(bytes.size())]);
        break;
      case 1:
        if (!text.empty()) text[at] = bytes[below(bytes.size())];
        break;
      case 2:
        text.erase(at, 1 + below(3));
        break;
      case 3:  // a piece of another text
        text.insert(at, others[below(others.size())].substr(0, below(40)));
        break;
      default:  // a piece moved
        text.insert(at, text.substr(below(text.size()), below(30)));
    }
  }
  return text;
}

TEST(DoBothParsersReadAlike, files_with_random_changes) {
  std::vector<std::string> texts{"a: 1\n", "- a\n- b: 2\n  c: [1, {d: e}]\n", "{\"a\": [1, 2], 'b': null}",
                                 "a:\n- 1\n- {b: c}\nd: \"e\\\"f\"\n"};
  for (const auto& path : files(2500)) texts.push_back(contents(path));
  std::mt19937_64 random(7);
  std::size_t read = 0;
  constexpr std::size_t tries = 60'000;
  for (std::size_t i = 0; i < tries; ++i) {
    // Small pieces: a change is then more often in the structure.
    const std::string& text = texts[random() % texts.size()];
    const std::size_t start = random() % std::max<std::size_t>(text.size(), 1), line = text.rfind('\n', start);
    const std::string piece = text.substr(line == std::string::npos ? 0 : line + 1, 20 + random() % 300);
    read += is_read_alike(changed(piece, texts, random), fmt::format("try {}", i), i % 3 == 0 ? 7 : 0) ? 1 : 0;
  }
  EXPECT_GE(read, tries / 10);  // enough of them stay readable to say something
}

}  // namespace
}  // namespace rehearse::config
