// What a fault of a source does, whenever and wherever the source says that one happens.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "config/shape.hpp"
#include "sim/faults/duration_law.hpp"
#include "sim/faults/fault.hpp"

namespace rehearse::sim {

// The cluster as far as faults know it.
struct FaultContext {
  int nodes = 1;  // of the job
  int rails = 1;  // network ports per node
  int gpus_per_node = 8;
  int spines = 0;  // 0: unknown
};

using LevelShares = std::array<double, level_count>;  // add up to 1

class Consequence {
 public:
  // `and_these`, and the keys of a fault description that say what it does: component, kind, level, recovery, slowdown, duration,
  // nodes, gpu, rail.
  [[nodiscard]] static std::vector<config::Parameter> keys(std::vector<config::Parameter> and_these = {});
  [[nodiscard]] static Consequence read(const config::Node& node, const FaultContext& context, const std::string& label);

  // A fault at that time. Its nodes are the aligned block of `nodes()` that holds `node`.
  [[nodiscard]] Fault at(Ns when, int node, Random& random) const;

  [[nodiscard]] int nodes() const { return nodes_; }
  [[nodiscard]] FaultKind kind() const { return kind_; }
  [[nodiscard]] const LevelShares& shares() const { return shares_; }
  [[nodiscard]] std::optional<double> mean_recovery_s() const;

 private:
  std::string label_;
  Component component_ = Component::any;
  FaultKind kind_ = FaultKind::fail;
  LevelShares shares_{};
  std::optional<DurationLaw> recovery_, duration_;
  double slowdown_ = 1;
  int unit_ = 0;
  bool lost_ = false;
  int nodes_ = 1;
  int job_nodes_ = 1;
};

}  // namespace rehearse::sim
