// P = min(compute * P_peak, I * memory * B_mem) (equation 19): the slower of computing and moving.
#include <algorithm>

#include "sim/cost/cost_model.hpp"

namespace rehearse::sim {
namespace {

class Roofline : public CostModel {
 public:
  Roofline(double flops_per_s, double bytes_per_s) : flops_per_s_(flops_per_s), bytes_per_s_(bytes_per_s) {}
  [[nodiscard]] double seconds(const workloads::Operator& op) const override {
    return std::max(op.flops / flops_per_s_, op.bytes / bytes_per_s_);
  }

 private:
  double flops_per_s_;
  double bytes_per_s_;
};

double share(const config::Node& node, const char* key) {
  const auto value = node.find(key);
  return value ? value->as_number(1e-3, 1) : 1;
}

class RooflineFactory : public CostModelFactory {
 public:
  [[nodiscard]] std::unique_ptr<const CostModel> make(const config::Node& node, const Ceiling& ceiling) const override {
    node.allow_keys({"model", "compute", "memory"});
    return std::make_unique<Roofline>(ceiling.flops_per_s * share(node, "compute"), ceiling.memory_bytes_per_s * share(node, "memory"));
  }
};

const CostModelRegistry::Registration<RooflineFactory> roofline_factory_registration{"roofline"};

}  // namespace
}  // namespace rehearse::sim
