// The command line of the program: every registered command, declared. What parses it, completes it and describes it.
#pragma once

#include <CLI/App.hpp>
#include <map>
#include <string>

#include "sim/cli/command.hpp"

namespace rehearse::cli {

struct ProgramApp {
  ProgramApp();

  CLI::App app{"Rehearses a training job of a large language model before anybody pays for it.", "rehearse"};
  std::map<std::string, Command::Action> actions;

 private:
  void declare(const std::string& name);
};

}  // namespace rehearse::cli
