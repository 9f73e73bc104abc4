#include <gtest/gtest.h>

#include <filesystem>

#include "tests/cli/program.hpp"

namespace rehearse::cli {
namespace {

TEST(Streams, AReaderThatGoesAwayIsNoError) {
  const TemporaryFolder folder;
  // More than the 64 KiB that a pipe holds, so that the program does meet the closed end.
  const std::string command = "set -o pipefail\n\"$rehearse\" topology dgx-a100-80g-hdr200 --gpus 64 --xml - ";
  const Outcome whole = run_shell(command, folder.path());
  ASSERT_GT(whole.out.size(), std::size_t{1} << 17);
  const Outcome cut = run_shell(command + "| head -n 1", folder.path());
  EXPECT_EQ(cut.code, 0);
  EXPECT_EQ(cut.err, "");
}

TEST(Streams, AFullDiskIsAnError) {
  const TemporaryFolder folder;
  const Outcome outcome = run_shell("\"$rehearse\" list models >/dev/full", folder.path());
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("cannot write to standard output: No space left on device"), std::string::npos) << outcome.err;
}

TEST(Streams, AFullDiskIsAnErrorForHelpToo) {
  for (const std::string arguments : {"--help", "predict --help", "--version"}) {
    const TemporaryFolder folder;
    const Outcome outcome = run_shell("\"$rehearse\" " + arguments + " >/dev/full", folder.path());
    EXPECT_EQ(outcome.code, 2) << arguments;
    EXPECT_NE(outcome.err.find("No space left on device"), std::string::npos) << outcome.err;
  }
}

TEST(Streams, ClosedStreamsAreNoCrash) {
  const TemporaryFolder folder;
  EXPECT_EQ(run_shell("exec \"$rehearse\" list models >&-", folder.path()).code, 2);
  EXPECT_EQ(run_shell("exec \"$rehearse\" list models >/dev/null 2>&-", folder.path()).code, 0);
  EXPECT_EQ(run_shell("exec \"$rehearse\" predict no-such-job 2>&-", folder.path()).code, 2);
}

// A shell's <(...) is a pipe, which can be read but once.
TEST(Streams, AJobMayBeAPipe) {
  const TemporaryFolder folder;
  const std::string job =
      "export job='{model: llama3-8b, cluster: dgx-h100-ndr400, gpus: 64, batch: {global: 128, micro: 1, sequence: 4096}, "
      "optimizer: {sharding: zero1}}'\n";
  const Outcome read =
      run_shell(job + "echo \"$job\" >job.yaml\n\"$rehearse\" predict job.yaml --json | jq .results.analytic.step_s", folder.path());
  for (const std::string given : {"<(echo \"$job\")", "- <<<\"$job\""}) {
    const Outcome piped = run_shell(job + "\"$rehearse\" predict --json " + given + " | jq .results.analytic.step_s", folder.path());
    EXPECT_EQ(piped.err, "");
    EXPECT_EQ(piped.out, read.out) << given;
    const Outcome same = run_shell(job + "\"$rehearse\" diff job.yaml " + given, folder.path());
    EXPECT_EQ(same.code, 0) << same.err;
  }
}

TEST(Streams, AJobWithoutEndIsRefused) {
  const TemporaryFolder folder;
  const Outcome outcome = run_shell("timeout 20 \"$rehearse\" predict /dev/zero", folder.path());
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err, "error: cannot read '/dev/zero': larger than 4 MiB\n");
}

TEST(Streams, NoLocaleChangesAByte) {
  const TemporaryFolder folder;
  const std::string command = "exec \"$rehearse\" compare llama3-8b-8-h100 --set batch.global=64";
  const Outcome plain = run_shell("export LC_ALL=C\n" + command, folder.path());
  ASSERT_EQ(plain.code, 0) << plain.err;
  for (const std::string locale : {"de_DE.UTF-8", "C.UTF-8", "tr_TR.UTF-8", "no such locale"}) {
    const Outcome other = run_shell("export LC_ALL='" + locale + "' LANG='" + locale + "'\n" + command, folder.path());
    EXPECT_EQ(other.code, 0) << locale << "\n" << other.err;
    EXPECT_EQ(other.out, plain.out) << locale;
  }
}

TEST(Streams, NoColourAndNoBarWhenNotOnATerminal) {
  const Outcome outcome = run_program("simulate llama3-8b-8-h100");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out.find('\033'), std::string::npos);
  EXPECT_EQ(outcome.err, "");
}

// script(1) gives the program a terminal.
TEST(Streams, OnATerminalThereIsColourUnlessNoColorIsSet) {
  const TemporaryFolder folder;
  const std::string command = " TERM=xterm script -qec \"'$rehearse' list gpus\" /dev/null";
  const Outcome coloured = run_shell("NO_COLOR=" + command, folder.path());
  ASSERT_EQ(coloured.code, 0) << coloured.err;
  EXPECT_NE(coloured.out.find("\033[1mname"), std::string::npos) << coloured.out;
  EXPECT_EQ(run_shell("NO_COLOR=1" + command, folder.path()).out.find('\033'), std::string::npos);
}

// Starts a long simulation, sends the signal once it runs, and returns what the shell saw.
Outcome interrupted_by(const std::string& signal, const std::filesystem::path& folder) {
  return run_shell(
      "set -m\n\"$rehearse\" simulate llama3-8b-8-h100 --set simulation.steps=1000 -o out &\nsleep 1\nkill -" + signal + " %1\nwait %1",
      folder);
}

TEST(Signals, AnInterruptedSimulationLeavesNothing) {
  for (const auto& [signal, code] : {std::pair<std::string, int>{"INT", 130}, {"TERM", 143}}) {
    const TemporaryFolder folder;
    EXPECT_EQ(interrupted_by(signal, folder.path()).code, code) << signal;
    EXPECT_FALSE(std::filesystem::exists(folder.path() / "out")) << signal;
  }
}

}  // namespace
}  // namespace rehearse::cli
