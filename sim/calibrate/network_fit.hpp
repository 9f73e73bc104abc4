// A cluster's links fitted to collectives that were measured on it.
#pragma once

#include <string>
#include <vector>

#include "sim/calibrate/parameters.hpp"
#include "workloads/operators.hpp"

namespace rehearse::sim {

struct CollectiveTime {
  double bytes = 0;  // as workloads::Communication counts
  double seconds = 0;
};

// One collective among the same ranks at several sizes.
struct MeasuredCollective {
  std::string source;  // a file's name
  workloads::CollectiveKind kind = workloads::CollectiveKind::all_reduce;
  std::vector<int> members;
  int gpus = 0;   // of the job that it was measured in
  int hosts = 0;  // that the members were on; 0: not told
  std::vector<CollectiveTime> times;
};

struct CollectiveError {
  std::string source, collective;
  int ranks = 0, hosts = 0, rows = 0;
  double before_pct = 0, after_pct = 0;  // mean absolute error of the times
};

struct NetworkCalibration {
  std::vector<FitParameter> parameters;
  std::vector<FittedParameter> fitted;
  std::vector<CollectiveError> errors;  // as measured
  Settings settings;                    // of a job
  config::Node cluster;                 // the file
};

// What ran on one host settles the links of a node; what ran on several the NICs, by the number of nodes where there are several numbers.
// The cluster and the stack whose collectives are taken, as a job says them: a name, a file, a mapping. Throws config::InputError.
[[nodiscard]] NetworkCalibration calibrate_to_collectives(const std::vector<MeasuredCollective>& measured, const config::Node& cluster,
                                                          const config::Node& software);

// Of files that nccl-tests print. Throws config::InputError.
[[nodiscard]] std::vector<MeasuredCollective> collectives_of_tables(const std::vector<std::string>& tables);

}  // namespace rehearse::sim
