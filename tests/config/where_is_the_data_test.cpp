#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "config/data_dir.hpp"

namespace rehearse::config {
namespace {

TEST(WhereIsTheData, the_source_tree_unless_told_otherwise) {
  unsetenv("REHEARSE_DATA");
  EXPECT_EQ(data_dir(), REHEARSE_SOURCE_DIR);
  setenv("REHEARSE_DATA", "", 1);
  EXPECT_EQ(data_dir(), REHEARSE_SOURCE_DIR);
  setenv("REHEARSE_DATA", "/elsewhere", 1);
  EXPECT_EQ(data_dir(), "/elsewhere");
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
