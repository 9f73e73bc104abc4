// The program loads SimGrid (and ns-3 with it) for what runs on it, and for nothing else.
#include <gtest/gtest.h>

#include "tests/cli/program.hpp"

namespace rehearse::cli {
namespace {

bool loads_simgrid(const std::string& arguments) {
  const TemporaryFolder folder;
  const Outcome outcome = run_shell("LD_DEBUG=files LD_DEBUG_OUTPUT=loaded $rehearse " + arguments, folder.path());
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const Outcome found = run_shell("cat loaded.* | grep -q 'calling init.*libsimgrid'", folder.path());
  EXPECT_LT(found.code, 2) << found.err;
  return found.code == 0;
}

TEST(IsSimGridLoadedWhenAskedFor, NotForFormulasAndOurOwnTimeline) {
  EXPECT_FALSE(loads_simgrid("predict llama3-8b-8-h100"));
  EXPECT_FALSE(loads_simgrid("simulate llama3-8b-8-h100"));
}

TEST(IsSimGridLoadedWhenAskedFor, ForWhatRunsOnIt) {
  EXPECT_TRUE(loads_simgrid("simulate llama3-8b-8-h100 --set simulation.solver=simgrid"));
  EXPECT_TRUE(loads_simgrid("run llama3-405b-54-days --runs 2"));
}

}  // namespace
}  // namespace rehearse::cli
