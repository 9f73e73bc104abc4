#include <gtest/gtest.h>

#include <random>

#include "config/node.hpp"

namespace rehearse::config {
namespace {

std::string rewritten(const std::string& text) { return Node::load_text(text, "t").to_yaml(); }

TEST(IsWrittenYamlReadBack, block_style_in_file_order) {
  EXPECT_EQ(rewritten("{b: 1, a: [x, [1, 2], {c: 3, d: []}], e: {}, f: ~}"),
            "b: 1\na:\n  - x\n  - - 1\n    - 2\n  - c: 3\n    d: []\ne: {}\nf: null\n");
}

TEST(IsWrittenYamlReadBack, quotes_only_where_needed) {
  EXPECT_EQ(rewritten("{a: \"plain text\", b: \"8\", c: \"true\", d: \"x: y\", e: \"\", f: '- a', g: -5, h: \"~\", i: \"a #b\"}"),
            "a: plain text\nb: \"8\"\nc: \"true\"\nd: \"x: y\"\ne: \"\"\nf: \"- a\"\ng: -5\nh: \"~\"\ni: \"a #b\"\n");
  EXPECT_EQ(rewritten("a: |\n  one\n  two\n"), "a: \"one\\ntwo\\n\"\n");
}

// Any text, written as a quoted scalar, comes back as the same text, and writing it again changes nothing.
TEST(IsWrittenYamlReadBack, any_text) {
  const std::string alphabet = " \t\n#:-?{}[],&*!|>'\"%@`~<0123456789.eEtruenul\\/=äxyz";
  std::mt19937_64 random(11);
  for (int i = 0; i < 3000; ++i) {
    std::string quoted;
    const std::size_t length = random() % 12;
    for (std::size_t k = 0; k < length; ++k) {
      const char c = alphabet[random() % 50];  // ASCII only: a cut character would not be UTF-8
      if (c == '\\' || c == '"') quoted += '\\';
      quoted += c == '\n'   ? std::string("\\n")
                : c == '\t' ? std::string("\\t")
                            : (static_cast<unsigned char>(c) < 0x80U ? std::string(1, c) : "ä");
    }
    const Node node = Node::load_text("{k: [\"" + quoted + "\"], \"" + quoted + "_\": v}", "t");
    const Node again = Node::load_text(node.to_yaml(), "t");
    EXPECT_EQ(again.at("k").items()[0].as_string(), node.at("k").items()[0].as_string());
    EXPECT_EQ(again.keys(), node.keys());
    EXPECT_EQ(again.to_yaml(), node.to_yaml());
  }
}

}  // namespace
}  // namespace rehearse::config
