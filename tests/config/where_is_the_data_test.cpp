#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "config/data_dir.hpp"
#include "places.hpp"
#include "tests/config/refusal.hpp"

namespace rehearse::config {
namespace {

TEST(WhereIsTheData, the_source_tree_unless_told_otherwise) {
  unsetenv("REHEARSE_DATA");
  EXPECT_EQ(data_dir(), REHEARSE_SOURCE_DIR);
  setenv("REHEARSE_DATA", "", 1);
  EXPECT_EQ(data_dir(), REHEARSE_SOURCE_DIR);
  const std::string other = std::string(REHEARSE_SOURCE_DIR) + "/tests/job/data";
  setenv("REHEARSE_DATA", other.c_str(), 1);
  EXPECT_EQ(data_dir(), other);
}

TEST(WhereIsTheData, a_folder_without_it_is_refused) {
  setenv("REHEARSE_DATA", "/elsewhere", 1);
  EXPECT_EQ(refusal_of([] { return data_names("workloads/models"); }),
            "error: REHEARSE_DATA: there are no folders workloads and platforms in '/elsewhere'\n"
            "  set REHEARSE_DATA to the folder that holds them, workloads/ and platforms/");
}

TEST(WhereIsTheData, names_are_sorted_files) {
  unsetenv("REHEARSE_DATA");
  const auto models = data_names("workloads/models");
  EXPECT_TRUE(std::is_sorted(models.begin(), models.end()));
  EXPECT_TRUE(std::binary_search(models.begin(), models.end(), "llama3-8b"));
  EXPECT_EQ(data_names("no/such/folder"), std::vector<std::string>{});
}

TEST(WhereIsTheData, only_names_of_the_folder_itself) {
  unsetenv("REHEARSE_DATA");
  EXPECT_EQ(data_file("workloads/models", "llama3-8b"), std::string(REHEARSE_SOURCE_DIR) + "/workloads/models/llama3-8b.yaml");
  EXPECT_EQ(data_file("workloads/models", "llama3-8c"), "");
  EXPECT_EQ(data_file("workloads/models", "../jobs/llama3-8b-8-h100"), "");
  EXPECT_EQ(data_file("workloads/models", ""), "");
}

}  // namespace
}  // namespace rehearse::config
