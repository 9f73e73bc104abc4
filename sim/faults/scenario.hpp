// All that can go wrong in a job: the sources of its `faults`, drawn together.
#pragma once

#include <memory>
#include <vector>

#include "sim/faults/fault_source.hpp"

namespace rehearse::sim {

class FaultScenario {
 public:
  // A mapping of sources (label: {source: poisson, ...}), or the name or path of a file that holds one, or of a trace (.csv).
  [[nodiscard]] static FaultScenario read(const config::Node& node, const FaultContext& context);

  // One history, in order of time; faults of the same instant in order of the sources. Different seeds give independent ones.
  [[nodiscard]] std::unique_ptr<FaultStream> open(std::uint64_t seed) const;
  [[nodiscard]] std::vector<FailureRate> rates(double horizon_s) const;
  // The sources written out, without reference to other files.
  [[nodiscard]] const config::Node& resolved() const { return resolved_; }

 private:
  std::vector<std::shared_ptr<const FaultPlan>> plans_;
  config::Node resolved_;
};

}  // namespace rehearse::sim
