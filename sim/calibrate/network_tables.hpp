// A cluster's links fitted to what nccl-tests print on it.
#pragma once

#include <string>
#include <vector>

#include "sim/calibrate/parameters.hpp"

namespace rehearse::sim {

struct TableError {
  std::string file, collective;
  int ranks = 0, hosts = 0, rows = 0;
  double before_pct = 0, after_pct = 0;  // mean absolute error of the times
};

struct NetworkCalibration {
  std::vector<FitParameter> parameters;
  std::vector<FittedParameter> fitted;
  std::vector<TableError> tables;
  config::Node cluster;  // the file
};

// Runs on one host settle the links of a node; runs on several the NICs, by the number of nodes where the tables have several numbers.
// `cluster`: a file or the name of a ready-made one; `software` names the stack whose collectives are taken. Throws config::InputError.
[[nodiscard]] NetworkCalibration calibrate_to_tables(const std::vector<std::string>& tables, const std::string& cluster,
                                                     const std::string& software);

}  // namespace rehearse::sim
