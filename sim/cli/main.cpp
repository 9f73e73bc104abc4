#include "sim/cli/program.hpp"

int main(int argc, char** argv) { return rehearse::cli::run(argc, argv); }
