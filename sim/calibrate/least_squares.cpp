#include "sim/calibrate/least_squares.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace rehearse::sim {
namespace {

using Vector = std::vector<double>;
using Matrix = std::vector<Vector>;

// Inverse of a symmetric positive definite matrix, by Gauss-Jordan elimination without pivots.
Matrix inverse(Matrix a) {
  const std::size_t n = a.size();
  Matrix out(n, Vector(n, 0.0));
  for (std::size_t i = 0; i < n; ++i) out[i][i] = 1;
  for (std::size_t i = 0; i < n; ++i) {
    const double pivot = a[i][i];
    for (std::size_t k = 0; k < n; ++k) {
      a[i][k] /= pivot;
      out[i][k] /= pivot;
    }
    for (std::size_t j = 0; j < n; ++j) {
      const double factor = a[j][i];
      if (j == i || factor == 0) continue;
      for (std::size_t k = 0; k < n; ++k) {
        a[j][k] -= factor * a[i][k];
        out[j][k] -= factor * out[i][k];
      }
    }
  }
  return out;
}

class Fit {
 public:
  Fit(const std::vector<FitParameter>& parameters, std::span<const double> measured, double noise, const FitModel& model)
      : parameters_(parameters), measured_(measured), noise_(noise), model_(model), x_(parameters.size(), 0.0) {}

  void descend(const std::vector<std::size_t>& free) {
    Vector residuals = residuals_at(x_);
    double cost = cost_of(residuals, x_), damping = 1e-3;
    for (int round = 0; round < most_rounds && damping < 1e6; ++round) {
      const Matrix slopes = slopes_at(free, residuals);
      bool better = false;
      while (!better && damping < 1e6) {
        const Vector next = stepped(free, slopes, residuals, damping);
        const Vector there = residuals_at(next);
        const double its = cost_of(there, next);
        better = its < cost;
        damping *= better ? 0.2 : 8;
        if (!better) continue;
        const bool settled = cost - its < 1e-7 * cost;
        x_ = next;
        residuals = there;
        cost = its;
        if (settled) return;
      }
    }
  }

  // Of each free parameter: 1 - posterior over prior standard deviation.
  [[nodiscard]] Vector told(const std::vector<std::size_t>& free) const {
    const Vector residuals = residuals_at(x_);
    const Matrix posterior = inverse(normal(slopes_at(free, residuals), residuals, free, 0));
    Vector out;
    for (std::size_t i = 0; i < free.size(); ++i) out.push_back(1 - std::min(1.0, std::sqrt(posterior[i][i]) / parameters_[free[i]].prior));
    return out;
  }

  void put_back(std::size_t which) { x_[which] = 0; }
  [[nodiscard]] double value(std::size_t which) const { return value_at(x_, which); }

 private:
  static constexpr int most_rounds = 25;
  static constexpr double slope_step = 0.01;

  [[nodiscard]] double value_at(const Vector& x, std::size_t which) const { return parameters_[which].value * std::exp(x[which]); }

  [[nodiscard]] Vector residuals_at(const Vector& x) const {
    Vector values;
    for (std::size_t i = 0; i < x.size(); ++i) values.push_back(value_at(x, i));
    Vector out = model_(values);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] -= measured_[i];
    return out;
  }

  [[nodiscard]] double weight(double residual) const { return std::min(1.0, 2 * noise_ / std::max(std::abs(residual), 1e-300)); }

  [[nodiscard]] double cost_of(const Vector& residuals, const Vector& x) const {
    double cost = 0;
    for (const double residual : residuals) {
      const double off = std::abs(residual) / noise_;
      cost += off <= 2 ? off * off : 4 * off - 4;
    }
    for (std::size_t i = 0; i < x.size(); ++i) cost += std::pow(x[i] / parameters_[i].prior, 2);
    return cost;
  }

  [[nodiscard]] double inside(std::size_t which, double x) const {
    const FitParameter& p = parameters_[which];
    return std::clamp(x, std::log(p.low / p.value), std::log(p.high / p.value));
  }

  [[nodiscard]] Matrix slopes_at(const std::vector<std::size_t>& free, const Vector& residuals) const {
    Matrix slopes;
    for (const std::size_t which : free) {
      Vector x = x_;
      x[which] = inside(which, x_[which] + slope_step);
      if (x[which] - x_[which] < slope_step / 2) x[which] = inside(which, x_[which] - slope_step);
      const double moved = x[which] - x_[which];
      Vector there = residuals_at(x);
      for (std::size_t i = 0; i < there.size(); ++i) there[i] = moved == 0 ? 0 : (there[i] - residuals[i]) / moved;
      slopes.push_back(std::move(there));
    }
    return slopes;
  }

  [[nodiscard]] Matrix normal(const Matrix& slopes, const Vector& residuals, const std::vector<std::size_t>& free, double damping) const {
    Matrix a(free.size(), Vector(free.size(), 0.0));
    for (std::size_t i = 0; i < free.size(); ++i) {
      for (std::size_t j = 0; j < free.size(); ++j) {
        for (std::size_t row = 0; row < residuals.size(); ++row)
          a[i][j] += weight(residuals[row]) * slopes[i][row] * slopes[j][row] / (noise_ * noise_);
      }
      a[i][i] = a[i][i] * (1 + damping) + 1 / std::pow(parameters_[free[i]].prior, 2);
    }
    return a;
  }

  [[nodiscard]] Vector stepped(const std::vector<std::size_t>& free, const Matrix& slopes, const Vector& residuals, double damping) const {
    const Matrix solve = inverse(normal(slopes, residuals, free, damping));
    Vector down;
    for (std::size_t i = 0; i < free.size(); ++i) {
      double slope = x_[free[i]] / std::pow(parameters_[free[i]].prior, 2);
      for (std::size_t row = 0; row < residuals.size(); ++row)
        slope += weight(residuals[row]) * slopes[i][row] * residuals[row] / (noise_ * noise_);
      down.push_back(-slope);
    }
    Vector next = x_;
    for (std::size_t i = 0; i < free.size(); ++i) {
      double move = 0;
      for (std::size_t j = 0; j < free.size(); ++j) move += solve[i][j] * down[j];
      next[free[i]] = inside(free[i], x_[free[i]] + std::clamp(move, -0.5, 0.5));
    }
    return next;
  }

  const std::vector<FitParameter>& parameters_;
  std::span<const double> measured_;
  double noise_;
  const FitModel& model_;
  Vector x_;  // logarithm of value over present value
};

}  // namespace

std::string FitParameter::text(double of) const { return unit.empty() ? fmt::format("{:.5g}", of) : fmt::format("{:.5g} {}", of, unit); }

std::vector<FittedParameter> fit_parameters(const std::vector<FitParameter>& parameters, std::span<const double> measured, double noise,
                                            const FitModel& model) {
  Fit fit(parameters, measured, noise, model);
  std::vector<std::size_t> all, clear;
  for (std::size_t i = 0; i < parameters.size(); ++i) all.push_back(i);
  std::vector<FittedParameter> out(parameters.size());
  fit.descend(all);
  const std::vector<double> told = fit.told(all);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    out[i].told = told[i];
    out[i].fitted = told[i] >= least_told;
    out[i].fitted ? clear.push_back(i) : fit.put_back(i);
  }
  if (!clear.empty()) fit.descend(clear);
  for (std::size_t i = 0; i < parameters.size(); ++i) out[i].value = out[i].fitted ? fit.value(i) : parameters[i].value;
  return out;
}

}  // namespace rehearse::sim
