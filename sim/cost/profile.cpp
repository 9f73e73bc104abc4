// Measured points. The rate of an operator is the weighted mean of the logarithms of the measured rates, the weight of a point 1/d^4 with d
// its distance in the logarithms of the shape (gemm: m, n, k; attention: query, key, head_dim, batch * heads). A measured shape gives
// exactly its measured rate; beyond the points the rate never leaves their range. Distances are Euclidean in natural logarithms.
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "sim/cost/cost_model.hpp"

namespace rehearse::sim {
namespace {

using KernelShape = std::array<double, 4>;

struct Point {
  KernelShape shape{};
  double log_rate = 0;  // ln(FLOP/s)
};

double log_size(std::int64_t size) { return std::log(static_cast<double>(std::max<std::int64_t>(size, 1))); }

KernelShape shape_of(const workloads::Operator& op) {
  if (op.cls == workloads::OperatorClass::attention) {
    return {log_size(op.query), log_size(op.key), log_size(op.head_dim), log_size(op.batch * op.heads)};
  }
  return {log_size(op.m), log_size(op.n), log_size(op.k), 0};
}

double distance_squared(const KernelShape& a, const KernelShape& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return sum;
}

class Profile : public CostModel {
 public:
  explicit Profile(std::vector<Point> points) : points_(std::move(points)) {}
  [[nodiscard]] double seconds(const workloads::Operator& op) const override { return op.flops / std::exp(log_rate(shape_of(op))); }

 private:
  [[nodiscard]] double log_rate(const KernelShape& shape) const {
    double weights = 0, sum = 0;
    for (const Point& point : points_) {
      const double squared = distance_squared(point.shape, shape);
      if (squared == 0) return point.log_rate;
      const double weight = 1 / (squared * squared);
      weights += weight;
      sum += weight * point.log_rate;
    }
    return sum / weights;
  }
  std::vector<Point> points_;
};

double log_field(const config::Node& node, const char* key) { return std::log(static_cast<double>(node.at(key).as_int(1, 1LL << 40))); }

Point read_point(const config::Node& node, workloads::OperatorClass cls) {
  Point point;
  if (cls == workloads::OperatorClass::attention) {
    node.allow_keys({"query", "key", "head_dim", "heads", "rate"});
    point.shape = {log_field(node, "query"), log_field(node, "key"), log_field(node, "head_dim"), log_field(node, "heads")};
  } else {
    node.allow_keys({"m", "n", "k", "rate"});
    point.shape = {log_field(node, "m"), log_field(node, "n"), log_field(node, "k"), 0};
  }
  point.log_rate = std::log(node.at("rate").as_quantity(config::Dimension::compute_rate, 1e6));
  return point;
}

void refuse_second(const config::Node& node, const std::vector<Point>& points, const Point& next) {
  for (const Point& point : points) {
    if (point.shape == next.shape) node.fail("this shape is already in the profile");
  }
}

class ProfileFactory : public CostModelFactory {
 public:
  [[nodiscard]] std::unique_ptr<const CostModel> make(const config::Node& node, const Ceiling& ceiling) const override {
    node.allow_keys({"model", "points"});
    if (!std::isfinite(ceiling.flops_per_s)) node.at("model").fail("a profile prices gemm and attention only", "use roofline");
    std::vector<Point> points;
    for (const config::Node& item : node.at("points").items()) {
      const Point point = read_point(item, ceiling.cls);
      refuse_second(item, points, point);
      points.push_back(point);
    }
    if (points.empty()) node.at("points").fail("a profile needs at least one point");
    return std::make_unique<Profile>(std::move(points));
  }
};

const CostModelRegistry::Registration<ProfileFactory> profile_factory_registration{"profile"};

}  // namespace
}  // namespace rehearse::sim
