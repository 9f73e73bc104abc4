// Where faults come from. One source, one .cpp with its registration (docs/fault-format.md).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/node.hpp"
#include "config/registry.hpp"
#include "config/shape.hpp"
#include "sim/faults/consequence.hpp"
#include "sim/faults/fault.hpp"

namespace rehearse::sim {

// Faults in order of time; nothing when there are no more.
class FaultStream {
 public:
  virtual ~FaultStream() = default;
  [[nodiscard]] virtual std::optional<Fault> next() = 0;
};

// What the formula takes from a source: failures of one level, per second of the job.
struct FailureRate {
  FaultLevel level = FaultLevel::pod;
  double per_s = 0;
  std::optional<double> recovery_s;  // mean, where the source has its own
};

// A source with its parameters, checked; draws any number of histories.
class FaultPlan {
 public:
  virtual ~FaultPlan() = default;
  [[nodiscard]] virtual std::unique_ptr<FaultStream> open(Random random) const = 0;
  // Mean over the first `horizon_s` seconds; slow components are not counted.
  [[nodiscard]] virtual std::vector<FailureRate> rates(double horizon_s) const = 0;
};

class FaultSource {
 public:
  static constexpr std::string_view kind = "fault source";
  virtual ~FaultSource() = default;

  // What a mapping of it may say beside `source`.
  [[nodiscard]] virtual std::vector<config::Parameter> keys() const = 0;
  // Throws config::InputError where `node` is not what this source takes. It may hold the key `source`.
  [[nodiscard]] virtual std::unique_ptr<FaultPlan> read(const config::Node& node, const FaultContext& context,
                                                        const std::string& label) const = 0;
  // The same source without reference to other files.
  [[nodiscard]] virtual config::Node resolved(const config::Node& node, const FaultContext& context) const;

 protected:
  // Refuses any other key than `source` and keys().
  void check_keys(const config::Node& node) const;
};

using FaultSourceRegistry = config::Registry<FaultSource>;

// A mapping of any of them: `source`, and all keys that one of them has.
[[nodiscard]] config::Shape fault_sources_shape();

// `rate` and `per`, as read_rate() takes them.
[[nodiscard]] std::vector<config::Parameter> rate_keys();

// Failures at `per_s` in all, shared over the levels.
[[nodiscard]] std::vector<FailureRate> shared_rates(const Consequence& consequence, double per_s);

// Failures per second of the job: `rate` of each of what `per` counts (node, the default; group: the blocks of `nodes`; job).
[[nodiscard]] double read_rate(const config::Node& node, const FaultContext& context, int nodes_per_group);

// How many of what `per` counts there are.
[[nodiscard]] int read_members(const config::Node& node, const FaultContext& context, int nodes_per_group);

}  // namespace rehearse::sim
