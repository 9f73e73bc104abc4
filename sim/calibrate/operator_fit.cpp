#include "sim/calibrate/operator_fit.hpp"

#include <fmt/format.h>

#include <cmath>

#include "config/yaml_text.hpp"
#include "sim/job/override.hpp"

namespace rehearse::sim {
namespace {

constexpr double noise_of_kernels = 0.15;  // of one class against another

// The GPU of a cluster.
class ClusterGpu {
 public:
  explicit ClusterGpu(const std::string& cluster)
      : document_(config::Node::load_text(fmt::format("cluster: {}\n", config::yaml_text(cluster)), "calibrate")) {}

  [[nodiscard]] Part part(const Settings& settings = {}) const {
    config::Node document = document_;
    for (const auto& [key, value] : settings) set_in_job(document, key, value);
    Part cluster = find_part(document.at("cluster"), cluster_part);
    return take_gpu(cluster);
  }
  [[nodiscard]] Gpu gpu(const Settings& settings = {}) const {
    const Part its = part(settings);
    return read_gpu(its.node, its.name);
  }

 private:
  config::Node document_;
};

std::vector<double> seconds(const std::vector<TracedOperator>& operators, const Gpu& gpu) {
  std::vector<double> out;
  for (const TracedOperator& each : operators) out.push_back(device_seconds(each, gpu, {}));
  return out;
}

}  // namespace

OperatorFit fit_to_operators(const std::vector<TracedOperator>& operators, const std::string& cluster) {
  const ClusterGpu part(cluster);
  const Gpu gpu = part.gpu();
  for (const TracedOperator& each : operators) {
    if (!gpu.peak_flops_per_s.contains(each.op.dtype) && each.op.cls != workloads::OperatorClass::memory_bound)
      throw config::InputError(
          fmt::format("{} computes in {}, of which GPU '{}' has no peak", each.shown, name_of(each.op.dtype), gpu.name));
  }
  OperatorFit out;
  out.gpu = part.part();
  const JobParameters all = parameters_of_gpu(out.gpu, gpu);
  out.parameters = all.parameters;
  std::vector<double> measured;
  for (const TracedOperator& each : operators) measured.push_back(std::log(each.median_s));
  out.fitted = fit_parameters(all.parameters, measured, noise_of_kernels, [&](std::span<const double> values) {
    std::vector<double> logs = seconds(operators, part.gpu(settings_of(all, values)));
    for (double& each : logs) each = std::log(each);
    return logs;
  });
  out.settings = settings_of_fitted(all, out.fitted);
  const std::vector<double> before = seconds(operators, gpu), after = seconds(operators, part.gpu(out.settings));
  for (std::size_t i = 0; i < operators.size(); ++i)
    out.compared.push_back({operators[i].shown, ComparedBy::shape, operators[i].median_s, before[i], after[i]});
  return out;
}

}  // namespace rehearse::sim
