// What yaml-cpp lets pass silently, and what would hurt it. Whole messages are compared in tests/job/malformed.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "config/node.hpp"
#include "tests/config/refusal.hpp"

namespace rehearse::config {
namespace {

std::string loading(const std::string& text) {
  return refusal_of([&] { return Node::load_text(text, "t"); });
}

bool mentions(const std::string& message, const std::string& part) { return message.find(part) != std::string::npos; }

TEST(IsADocumentRefused, duplicate_keys_at_any_depth_name_the_first) {
  EXPECT_TRUE(mentions(loading("a: 1\nb: 2\na: 3\n"), "t:3:1: error: duplicate key 'a' (first on line 1)"));
  EXPECT_TRUE(mentions(loading("a:\n  - b: {c: 1, c: 2}\n"), "t:2:15: error: duplicate key 'c' (first on line 2)"));
  EXPECT_EQ(loading("a: {c: 1}\nb: {c: 1}\n"), "(accepted)");
}

TEST(IsADocumentRefused, merge_keys_anchors_tags) {
  EXPECT_TRUE(mentions(loading("a: 1\n<<: {b: 2}\n"), "merge keys"));
  EXPECT_EQ(loading("a: 1\n\"<<\": 2\n"), "(accepted)");
  EXPECT_TRUE(mentions(loading("a: &x {b: *x}\n"), "anchors"));  // an alias inside its own anchor
  EXPECT_TRUE(mentions(loading("a: &x [1]\nb: [*x, *x]\n"), "anchors"));
  EXPECT_TRUE(mentions(loading("a: !int 3\n"), "tags"));
}

TEST(IsADocumentRefused, json_that_was_cut_off) {
  const auto reading = [](const std::string& text) { return refusal_of([&] { return Node::load_text(text, "config.json"); }); };
  EXPECT_EQ(reading("{\"a\": [1,\n  {\"b\": 2}"),
            "config.json:1:7: error: the file ends before this '[' is closed\n    1 | {\"a\": [1,\n      |       ^\n"
            "  is the file complete?");
  EXPECT_TRUE(mentions(reading("{\"a\": \"half of a te"), "config.json:1:7: error: the file ends before this '\"' is closed"));
  EXPECT_TRUE(mentions(reading("{\"a\""), "config.json:1:1: error: the file ends before this '{' is closed"));
  EXPECT_EQ(reading("{\"a\": \"}]{ \\\" \\\\\", \"b\": [1, {}]}"), "(accepted)");
}

TEST(IsADocumentRefused, lines_are_shown_without_what_moves_the_cursor) {
  const InputError error({"counts.csv", 1, 1}, "no table", "\033[2Jgone\tx");
  EXPECT_STREQ(error.what(), "counts.csv:1:1: error: no table\n    1 | ?[2Jgone\tx\n      | ^");
}

TEST(IsADocumentRefused, none_or_several) {
  EXPECT_EQ(loading(""), "t: error: the document is empty");
  EXPECT_EQ(loading("# only this\n"), "t: error: the document is empty");
  EXPECT_EQ(loading("~\n"), "t: error: the document is empty");
  EXPECT_TRUE(mentions(loading("a: 1\n---\na: 2\n"), "t:2:1: error: a second document"));
  EXPECT_EQ(loading("---\na: 1\n...\n"), "(accepted)");
}

TEST(IsADocumentRefused, not_a_text) {
  EXPECT_EQ(loading(std::string("a: b\0c\n", 7)), "t:1:5: error: not a text: control character 0x00");
  EXPECT_EQ(loading("a: 1\nb: \xff\n"), "t:2:4: error: not a UTF-8 text: byte 0xff");
  EXPECT_EQ(loading("a: \xed\xa0\x80\n"), "t:1:4: error: not a UTF-8 text: byte 0xed");      // a surrogate
  EXPECT_EQ(loading("a: \xf4\x90\x80\x80\n"), "t:1:4: error: not a UTF-8 text: byte 0xf4");  // beyond U+10FFFF
  EXPECT_EQ(loading("a: \xe2\x82"), "t:1:4: error: not a UTF-8 text: byte 0xe2");            // cut short
  EXPECT_EQ(loading("\xef\xbb\xbf"
                    "a: \xe2\x82\xac\n"),
            "(accepted)");  // byte order mark, euro sign
}

TEST(IsADocumentRefused, tabs_may_not_indent_blocks) {
  EXPECT_TRUE(mentions(loading("a:\n\tb: 1\n"), "t:2:1: error: a tab cannot indent"));
  EXPECT_TRUE(mentions(loading("a:\n  \tb: 1\n"), "t:2:3: error: a tab cannot indent"));
  EXPECT_EQ(loading("a: 1\t# a comment\n\t\n\t# another\n"), "(accepted)");
  EXPECT_EQ(loading("{\n\t\"a\": 1\n}\n"), "(accepted)");  // JSON
}

TEST(IsADocumentRefused, nested_deeper_than_any_real_file) {
  EXPECT_EQ(loading("a: " + std::string(90, '[') + std::string(90, ']')), "(accepted)");
  EXPECT_TRUE(mentions(loading("a: " + std::string(5000, '[') + std::string(5000, ']')), "nested deeper than 100 levels"));
  std::string blocks;
  for (int i = 0; i < 3000; ++i) blocks += "- ";
  EXPECT_TRUE(mentions(loading(blocks), "nested deeper than 100 levels"));
}

TEST(IsADocumentRefused, unreadable_files) {
  EXPECT_EQ(refusal_of([] { return Node::load_file("no/such.yaml"); }), "error: cannot read 'no/such.yaml': No such file or directory");
  EXPECT_EQ(refusal_of([] { return Node::load_file("/"); }), "error: cannot read '/': Is a directory");
  const auto path = std::filesystem::temp_directory_path() / "rehearse-large-input.yaml";
  std::ofstream(path) << "a: [" << std::string(10'000'000, ',') << "]\n";
  EXPECT_EQ(refusal_of([&] { return Node::load_file(path.string()); }), "error: cannot read '" + path.string() + "': larger than 4 MiB");
  std::filesystem::remove(path);
}

// One line of a megabyte must not cost its square.
TEST(IsADocumentRefused, long_lines_are_read_in_linear_time) {
  std::string list = "a: [";
  for (int i = 0; i < 300'000; ++i) list += "1, ";
  EXPECT_EQ(Node::load_text(list + "1]\n", "t").at("a").items().size(), 300'001U);
}

}  // namespace
}  // namespace rehearse::config
