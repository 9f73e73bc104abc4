// What the kinds of `rehearse calibrate` have in common.
#pragma once

#include <string>
#include <vector>

#include "sim/calibrate/parameters.hpp"
#include "sim/cli/command.hpp"
#include "sim/report/table.hpp"

namespace rehearse::cli {

struct CalibrateOptions {
  std::string what, job, from, stack;
  std::vector<std::string> files, sets;
  std::string gpu, cluster, software;  // files to write
};

// A part with what was fitted, and where it is to be written.
struct File {
  std::string path;
  config::Node document;
};

[[nodiscard]] std::string rendered(const sim::Table& table);
[[nodiscard]] std::string parameter_table(const std::vector<sim::FitParameter>& parameters,
                                          const std::vector<sim::FittedParameter>& fitted);

// Of no file asked for everything is fitted, and only told.
[[nodiscard]] sim::FittedParts parts_of(const CalibrateOptions& options);
[[nodiscard]] std::vector<File> files_of(const CalibrateOptions& options, const sim::JobParts& parts, const sim::Settings& settings);
[[nodiscard]] Exit deliver(const CalibrateOptions& options, const std::string& told, const std::vector<File>& files);
// That whose collectives were measured.
[[nodiscard]] std::string stack_of(const CalibrateOptions& options);
void refuse_option(const std::string& given, const char* option, const char* what);

// rehearse calibrate trace
[[nodiscard]] Exit calibrate_to_traces(const CalibrateOptions& options);

}  // namespace rehearse::cli
