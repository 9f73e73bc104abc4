// Symmetric matrices of the size of the resources: the load matrix A(T) = sum of q q^T / (T - alpha) and its spectral radius.
#pragma once

#include "sim/federated/problem.hpp"

namespace rehearse::federated {

struct LoadMatrix {
  std::array<PerResource, max_resources> at{};

  // Adds scale q q^T.
  void add(const PerResource& q, double scale) {
    for (int i = 0; i < max_resources; ++i) {
      for (int j = 0; j < max_resources; ++j) at[i][j] += scale * q[i] * q[j];
    }
  }
  [[nodiscard]] PerResource times(const PerResource& v) const { return {dot(at[0], v), dot(at[1], v), dot(at[2], v)}; }
};

// The largest eigenvalue of a nonnegative matrix and its eigenvector (Perron): nonnegative, of length 1.
struct Perron {
  double radius = 0;
  PerResource vector{};
};
[[nodiscard]] Perron perron(const LoadMatrix& matrix);

// Whether the spectral radius of a nonnegative, positive semidefinite matrix is below 1: all leading minors of 1 - A are positive.
[[nodiscard]] bool radius_below_one(const LoadMatrix& matrix);

}  // namespace rehearse::federated
