// Equations (9)-(12): the time of the pipelined part of a step in closed form. One .cpp per schedule in sim/analytic/pipelines/, registered
// under the schedule's name.
#pragma once

#include <string_view>
#include <vector>

#include "config/registry.hpp"

namespace rehearse::sim {

// Seconds. Chunks are those of a stage in model order.
struct PipelineTimes {
  int microbatches = 1;
  std::vector<std::vector<double>> forward_s,
      backward_s;                             // [stage][chunk]; backward: both gradients, or the input's alone when it is split
  std::vector<std::vector<double>> weight_s;  // [stage][chunk] weight gradient when backward is split, else 0
  std::vector<double>
      hop_s;  // [stage] a message from stage s to the next, either direction; the last entry is the way from the last to the first
  std::vector<double> early_s;  // [stage] how long before the end of the chunk its messages to the next stage, and back, leave; empty: 0
  // [stage] seconds of a forward chunk beside a backward one (overlap.ep), mean over chunks; empty: slots run one at a time.
  std::vector<double> pair_s;
  bool blocking = false;  // the sender computes on only when its message has arrived

  [[nodiscard]] int stages() const { return static_cast<int>(forward_s.size()); }
};

class PipelineFormula {
 public:
  static constexpr std::string_view kind = "pipeline formula";
  virtual ~PipelineFormula() = default;
  // Exact for uniform stages without messages; with uneven stages and messages see docs/analytic-model.md.
  [[nodiscard]] virtual double seconds(const PipelineTimes& times) const = 0;
};

using PipelineFormulaRegistry = config::Registry<PipelineFormula>;

// Every schedule formula starts from this: blocking messages as part of the chunk that sends them, and messages that leave early as hops
// that are shorter by that.
[[nodiscard]] PipelineTimes with_blocking_inlined(const PipelineTimes& times);

}  // namespace rehearse::sim
