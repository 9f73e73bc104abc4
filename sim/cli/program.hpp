// The program without its main().
#pragma once

namespace rehearse::cli {

// Runs the command line. Results go to standard output, talk to standard error. Returns the exit code: 0 fine, 1 the answer is no,
// 2 wrong input, 3 internal error.
[[nodiscard]] int run(int argc, char** argv);

}  // namespace rehearse::cli
