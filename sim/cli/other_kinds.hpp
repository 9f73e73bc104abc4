// Jobs of other kinds than training (sim/kind/job_kind.hpp) under the same commands.
#pragma once

#include <optional>
#include <string>

#include "sim/cli/command.hpp"

namespace rehearse::cli {

// Adds to a command the options that other kinds of job take and it does not have itself.
void declare_options_of_kinds(const std::string& command, CLI::App& app);

// Where the command's JOB is of another kind: that kind's answer, delivered. Nothing where it is a training job, or where the command is
// about none. Throws config::InputError where the kind does not know the command or one of the options given, and where a training job is
// given an option of another kind.
[[nodiscard]] std::optional<Exit> answer_of_other_kind(const CLI::App& command);

}  // namespace rehearse::cli
