#include <gtest/gtest.h>

#include <limits>

#include "config/node.hpp"
#include "tests/config/refusal.hpp"

namespace rehearse::config {
namespace {

constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
constexpr double unlimited = std::numeric_limits<double>::infinity();

Node value(const std::string& text) { return Node::load_text("x: " + text + "\n", "t").at("x"); }

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

TEST(IsAScalarWhatItSays, whole_numbers) {
  EXPECT_EQ(value("8").as_int(1, 10), 8);
  EXPECT_EQ(value("-8").as_int(-10, 10), -8);
  EXPECT_EQ(value("0").as_int(0, 0), 0);
  EXPECT_EQ(value("1e6").as_int(0, most), 1'000'000);
  EXPECT_EQ(value("15e12").as_int(0, most), 15'000'000'000'000);
  EXPECT_EQ(value("1.5e3").as_int(0, most), 1500);
  EXPECT_EQ(value("9007199254740992").as_int(0, most), 9007199254740992);  // 2^53
}

TEST(IsAScalarWhatItSays, bounds_are_inclusive_and_named) {
  EXPECT_EQ(value("10").as_int(1, 10), 10);
  EXPECT_EQ(refusal_of([] { return value("11").as_int(1, 10); }),
            "t:1:4: error: x must be between 1 and 10, not 11\n    1 | x: 11\n      |    ^");
  EXPECT_EQ(first_line(refusal_of([] { return value("0").as_int(1, most); })), "t:1:4: error: x must be at least 1, not 0");
  EXPECT_EQ(first_line(refusal_of([] { return value("0.5").as_number(1, unlimited); })), "t:1:4: error: x must be at least 1, not 0.5");
}

TEST(IsAScalarWhatItSays, what_is_no_whole_number) {
  for (const char* text : {"1.5", "eight", "0x10", "1_000", "1e-3", ".nan", ".inf", "true", "\"8\"", "8 GPUs", "+", "1e", "--1"}) {
    EXPECT_NE(refusal_of([&] { return value(text).as_int(-most, most); }).find("x must be"), std::string::npos) << text;
  }
  // Digits alone are exact beyond 2^53, where doubles are not.
  EXPECT_EQ(value("9007199254740993").as_int(0, most), 9007199254740993);
  EXPECT_NE(refusal_of([] { return value("9007199254740993").as_int(0, 9007199254740992); }), "(accepted)");
  EXPECT_NE(refusal_of([] { return value("9007199254740993e3").as_int(0, most); }).find("whole number"), std::string::npos);
}

TEST(IsAScalarWhatItSays, leading_zeros_are_ambiguous) {
  const char* expected = "t:1:4: error: x must be written without leading zeros, not '010'";
  EXPECT_EQ(first_line(refusal_of([] { return value("010").as_int(0, 100); })), expected);
  EXPECT_EQ(first_line(refusal_of([] { return value("010").as_number(0, 100); })), expected);
  EXPECT_EQ(value("0.10").as_number(0, 1), 0.1);
}

TEST(IsAScalarWhatItSays, numbers) {
  EXPECT_EQ(value("0.5").as_number(0, 1), 0.5);
  EXPECT_EQ(value("1e-05").as_number(0, 1), 1e-5);
  EXPECT_EQ(value("-.5").as_number(-1, 1), -0.5);
  for (const char* text : {"nan", ".nan", "inf", "-inf", ".inf", "1e999", "half"}) {
    EXPECT_NE(refusal_of([&] { return value(text).as_number(-unlimited, unlimited); }), "(accepted)") << text;
  }
}

TEST(IsAScalarWhatItSays, truth) {
  EXPECT_TRUE(value("true").as_bool());
  EXPECT_FALSE(value("false").as_bool());
  for (const char* text : {"yes", "True", "on", "1", "\"true\"", "~"}) {
    EXPECT_NE(refusal_of([&] { return value(text).as_bool(); }).find("true or false"), std::string::npos) << text;
  }
}

TEST(IsAScalarWhatItSays, texts) {
  EXPECT_EQ(value("a b").as_string(), "a b");
  EXPECT_EQ(value("\"8\"").as_string(), "8");
  EXPECT_EQ(value("\"\"").as_string(), "");
  EXPECT_EQ(value("\"a\\n\\tb\"").as_string(), "a\n\tb");
  EXPECT_NE(refusal_of([] { return value("[a]").as_string(); }), "(accepted)");
  EXPECT_NE(refusal_of([] { return value("\"\\a\"").as_string(); }).find("control characters"), std::string::npos);
  EXPECT_NE(refusal_of([] { return value("").as_string(); }), "(accepted)");
}

TEST(IsAScalarWhatItSays, quantities_and_choices) {
  EXPECT_EQ(value("5 us").as_quantity(Dimension::time), 5e-6);
  EXPECT_EQ(first_line(refusal_of([] { return value("-5 us").as_quantity(Dimension::time); })),
            "t:1:4: error: x must not be negative: '-5 us'");
  EXPECT_EQ(first_line(refusal_of([] { return value("5 us").as_quantity(Dimension::time, 1e-3); })),
            "t:1:4: error: x must be at least 1.00 ms, not '5 us'");
  EXPECT_EQ(value("ring").as_choice({"ring", "tree"}), "ring");
  EXPECT_EQ(refusal_of([] {
              return value("rings").as_choice({"ring", "tree"});
            }),
            "t:1:4: error: x cannot be 'rings'\n    1 | x: rings\n      |    ^\n  did you mean 'ring'? known: ring, tree");
}

}  // namespace
}  // namespace rehearse::config
