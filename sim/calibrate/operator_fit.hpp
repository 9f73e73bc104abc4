// A GPU fitted to operators whose shapes a trace tells; no job is needed.
#pragma once

#include <string>
#include <vector>

#include "sim/calibrate/compared_time.hpp"
#include "sim/calibrate/parameters.hpp"
#include "sim/calibrate/traced_operators.hpp"

namespace rehearse::sim {

struct OperatorFit {
  std::vector<FitParameter> parameters;
  std::vector<FittedParameter> fitted;
  std::vector<ComparedTime> compared;  // the operators, as given
  Settings settings;                   // of a job with that cluster
  Part gpu;
};

// `cluster`: a file or the name of a ready-made one, with whose GPU it begins. Throws config::InputError.
[[nodiscard]] OperatorFit fit_to_operators(const std::vector<TracedOperator>& operators, const std::string& cluster);

}  // namespace rehearse::sim
