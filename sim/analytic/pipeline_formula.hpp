// Equations (9)-(12): the time of the pipelined part of a step in closed form. One .cpp per schedule in sim/analytic/pipelines/, registered
// under the schedule's name.
#pragma once

#include <string_view>
#include <vector>

#include "config/registry.hpp"
#include "sim/analytic/overlap.hpp"

namespace rehearse::sim {

// Seconds. Chunks are those of a stage in model order.
struct PipelineTimes {
  int microbatches = 1;
  std::vector<std::vector<double>> forward_s,
      backward_s;                             // [stage][chunk]; backward: both gradients, or the input's alone when it is split
  std::vector<std::vector<double>> weight_s;  // [stage][chunk] weight gradient when backward is split, else 0
  std::vector<std::vector<double>> whole_s;   // [stage][chunk] backward in one slot; empty: backward_s + weight_s
  std::vector<double>
      hop_s;  // [stage] a message from stage s to the next, either direction; the last entry is the way from the last to the first
  // [stage][chunk] how long before the end of a forward or backward its message leaves; empty: 0.
  std::vector<std::vector<double>> early_forward_s, early_backward_s;
  // [stage][chunk] the part of a forward, or of a backward in one slot or two, that comes before its message is needed: it may run while
  // the stage waits for that; empty: 0.
  std::vector<std::vector<double>> lead_forward_s, lead_backward_s;
  // [stage][forward chunk][backward chunk] of the two beside each other (overlap.ep); empty: slots run one at a time.
  std::vector<std::vector<std::vector<PairTimes>>> pairs;
  bool blocking = false;  // the sender computes on only when its message has arrived

  [[nodiscard]] int stages() const { return static_cast<int>(forward_s.size()); }
};

class PipelineFormula {
 public:
  static constexpr std::string_view kind = "pipeline formula";
  virtual ~PipelineFormula() = default;
  // Exact for uniform stages without messages; with uneven stages and messages see docs/analytic-model.md. Knows neither early messages,
  // leads nor pairs: slot_walk.hpp does.
  [[nodiscard]] virtual double seconds(const PipelineTimes& times) const = 0;
};

using PipelineFormulaRegistry = config::Registry<PipelineFormula>;

// Whether all stages and chunks take equally long and a closed form is right for them.
[[nodiscard]] bool is_uniform(const PipelineTimes& times);

// Every schedule formula starts from this: blocking messages as part of the chunk that sends them.
[[nodiscard]] PipelineTimes with_blocking_inlined(const PipelineTimes& times);

}  // namespace rehearse::sim
