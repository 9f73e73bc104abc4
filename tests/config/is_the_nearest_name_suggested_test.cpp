#include <gtest/gtest.h>

#include "config/input_error.hpp"

namespace rehearse::config {
namespace {

const std::vector<std::string> keys{"parallel", "precision", "tp", "pp", "schedule"};

TEST(IsTheNearestNameSuggested, one_edit_away) {
  EXPECT_EQ(nearest("paralel", keys), "parallel");    // a letter left out
  EXPECT_EQ(nearest("paralllel", keys), "parallel");  // one too many
  EXPECT_EQ(nearest("porallel", keys), "parallel");   // a wrong one
  EXPECT_EQ(nearest("aprallel", keys), "parallel");   // two swapped
}

// A name begun is nearer than one with more than one letter changed.
TEST(IsTheNearestNameSuggested, what_the_word_begins) {
  const std::vector<std::string> clusters{"aws-p4d", "dgx-h100-ndr400", "dgx-h200", "hgx-b200"};
  EXPECT_EQ(nearest("dgx-h100", clusters), "dgx-h200");
  EXPECT_EQ(nearest("dgx-h100-ndr", clusters), "dgx-h100-ndr400");
  EXPECT_EQ(nearest("dgx-h10", clusters), "dgx-h100-ndr400");
  EXPECT_EQ(nearest("aws", clusters), "");
}

// The limit is 1 + length/3 edits: 3 for "schedule", 1 for "xy".
TEST(IsTheNearestNameSuggested, nothing_when_none_is_near) {
  EXPECT_EQ(nearest("shedul", keys), "schedule");
  EXPECT_EQ(nearest("xyz", keys), "");
  EXPECT_EQ(nearest("zzzzzzzz", keys), "");
  EXPECT_EQ(nearest("tp", {}), "");
}

TEST(IsTheNearestNameSuggested, the_first_of_equals) { EXPECT_EQ(nearest("xp", keys), "tp"); }

TEST(IsTheNearestNameSuggested, with_the_known_ones) {
  EXPECT_EQ(suggestion("tpp", keys), "did you mean 'tp'? known: parallel, precision, tp, pp, schedule");
  EXPECT_EQ(suggestion("frobnicate", keys), "known: parallel, precision, tp, pp, schedule");
  EXPECT_EQ(suggestion("x", {}), "known: none");
}

TEST(IsTheNearestNameSuggested, long_junk_costs_nothing) { EXPECT_EQ(nearest(std::string(4'000'000, 'x'), {"tp"}), ""); }

TEST(IsTheNearestNameSuggested, repeated_text_is_cut_and_harmless) {
  EXPECT_EQ(shown("tiny"), "'tiny'");
  EXPECT_EQ(shown("a\x1b[31mb\n"), "'a?[31mb?'");
  EXPECT_EQ(shown(std::string(59, 'x') + "äyz"), "'" + std::string(59, 'x') + "...'");
}

}  // namespace
}  // namespace rehearse::config
