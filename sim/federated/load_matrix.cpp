#include "sim/federated/load_matrix.hpp"

#include <cmath>

namespace rehearse::federated {
namespace {

using Matrix = std::array<PerResource, max_resources>;

// One Jacobi rotation, which makes a[p][q] zero (Golub and Van Loan, section 8.5).
void rotate(Matrix& a, Matrix& vectors, int p, int q) {
  if (a[p][q] == 0) return;
  const double theta = (a[q][q] - a[p][p]) / (2 * a[p][q]);
  const double t = (theta >= 0 ? 1 : -1) / (std::abs(theta) + std::hypot(theta, 1));
  const double c = 1 / std::hypot(t, 1), s = t * c;
  for (int k = 0; k < max_resources; ++k) {
    const double kp = a[k][p], kq = a[k][q];
    a[k][p] = c * kp - s * kq;
    a[k][q] = s * kp + c * kq;
  }
  for (int k = 0; k < max_resources; ++k) {
    const double pk = a[p][k], qk = a[q][k];
    a[p][k] = c * pk - s * qk;
    a[q][k] = s * pk + c * qk;
  }
  for (PerResource& row : vectors) {
    const double rp = row[p], rq = row[q];
    row[p] = c * rp - s * rq;
    row[q] = s * rp + c * rq;
  }
}

PerResource of_length_one(PerResource v) {
  const double length = std::sqrt(dot(v, v));
  for (double& x : v) x /= length;
  return v;
}

}  // namespace

Perron perron(const LoadMatrix& matrix) {
  Matrix a = matrix.at, vectors{{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}};
  constexpr int sweeps = 12;  // converges quadratically: 5 are enough for 3 x 3
  for (int sweep = 0; sweep < sweeps; ++sweep) {
    rotate(a, vectors, 0, 1);
    rotate(a, vectors, 0, 2);
    rotate(a, vectors, 1, 2);
  }
  int largest = 0;
  for (int i = 1; i < max_resources; ++i) largest = a[i][i] > a[largest][largest] ? i : largest;
  PerResource v{};
  for (int i = 0; i < max_resources; ++i) v[i] = std::abs(vectors[i][largest]);
  // Power steps have no cancellation: they make even the smallest components right to the last digits.
  constexpr int polish = 3;
  double radius = a[largest][largest];
  for (int i = 0; i < polish && radius > 0; ++i) {
    const PerResource next = matrix.times(v);
    radius = dot(next, v) / dot(v, v);
    v = of_length_one(next);
  }
  return {radius, v};
}

bool radius_below_one(const LoadMatrix& matrix) {
  const Matrix& a = matrix.at;
  const double b00 = 1 - a[0][0], b11 = 1 - a[1][1], b22 = 1 - a[2][2];
  const double minor = b00 * b11 - a[0][1] * a[0][1];
  if (b00 <= 0 || minor <= 0) return false;
  const double whole = b22 * minor - b11 * a[0][2] * a[0][2] - b00 * a[1][2] * a[1][2] - 2 * a[0][1] * a[0][2] * a[1][2];
  return whole > 0;
}

}  // namespace rehearse::federated
