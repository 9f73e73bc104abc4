// Parameters that explain measured times: damped Gauss-Newton in the logarithms of both, with a prior around every parameter's present
// value, so that what the measurements do not tell stays where it is.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

namespace rehearse::sim {

struct FitParameter {
  std::string key;   // as --set takes it
  double value = 0;  // present, above 0
  double low = 0, high = 0;
  double prior = 0.35;                              // standard deviation of the logarithm: how far off the present value may well be
  std::string unit = {};                            // behind the number in a file: "us"
  [[nodiscard]] std::string text(double of) const;  // as a file says it, three significant digits and more where it is fitted
};

struct FittedParameter {
  double value = 0;
  double told = 0;  // 0..1: by how much the measurements narrow the prior; 1: they settle it
  bool fitted = false;
};

// Logarithms of what the model says of each measurement, with these values of the parameters.
using FitModel = std::function<std::vector<double>(std::span<const double>)>;

// Below this share of a parameter's prior that the measurements take away it keeps its value.
inline constexpr double least_told = 0.5;

// noise: standard deviation of the measurements' logarithms. What lies more than two of them off pulls as if it were two off (Huber). First
// all parameters together; those which the measurements tell less than least_told of are put back, and the others fitted again.
[[nodiscard]] std::vector<FittedParameter> fit_parameters(const std::vector<FitParameter>& parameters, std::span<const double> measured,
                                                          double noise, const FitModel& model);

}  // namespace rehearse::sim
