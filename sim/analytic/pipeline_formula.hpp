// Equations (9)-(12): the time of the pipelined part of a step in closed form. One .cpp per schedule in sim/analytic/pipelines/, registered
// under the schedule's name.
#pragma once

#include <algorithm>
#include <span>
#include <string_view>
#include <vector>

#include "config/registry.hpp"
#include "sim/analytic/overlap.hpp"

namespace rehearse::sim {

// [stage][chunk]; every stage has as many chunks. Keeps its storage when it is laid out anew.
class PerChunk {
 public:
  void lay_out(std::size_t stages, std::size_t chunks) {
    stages_ = stages;
    chunks_ = chunks;
    values_.assign(stages * chunks, 0.0);
  }
  void assign(std::size_t stages, const std::vector<double>& chunks) {
    stages_ = 0;
    values_.clear();
    for (std::size_t s = 0; s < stages; ++s) append(chunks);
  }
  void append(const std::vector<double>& chunks) {
    ++stages_;
    chunks_ = chunks.size();
    values_.insert(values_.end(), chunks.begin(), chunks.end());
  }
  void clear() { lay_out(0, 0); }
  [[nodiscard]] bool empty() const { return stages_ == 0; }
  [[nodiscard]] std::size_t size() const { return stages_; }
  [[nodiscard]] std::span<double> operator[](std::size_t stage) { return std::span(values_).subspan(stage * chunks_, chunks_); }
  [[nodiscard]] std::span<const double> operator[](std::size_t stage) const { return std::span(values_).subspan(stage * chunks_, chunks_); }
  [[nodiscard]] const std::vector<double>& all() const { return values_; }
  [[nodiscard]] std::vector<double>& all() { return values_; }
  bool operator==(const PerChunk&) const = default;

 private:
  std::size_t stages_ = 0, chunks_ = 0;
  std::vector<double> values_;
};

// Seconds. Chunks are those of a stage in model order.
struct PipelineTimes {
  int microbatches = 1;
  PerChunk forward_s, backward_s;  // backward: both gradients, or the input's alone when it is split
  PerChunk weight_s;               // weight gradient when backward is split, else 0
  PerChunk whole_s;                // backward in one slot; empty: backward_s + weight_s
  std::vector<double>
      hop_s;  // [stage] a message from stage s to the next, either direction; the last entry is the way from the last to the first
  // The part of a forward, or of a backward in one slot or two, that comes before its message is needed: it may run while the stage waits
  // for that; empty: 0.
  PerChunk lead_forward_s, lead_backward_s;
  // [(stage * chunks + forward chunk) * chunks + backward chunk] of the two beside each other (overlap.ep); empty: slots run one at a time.
  std::vector<PairTimes> pairs;
  bool blocking = false;  // the sender computes on only when its message has arrived

  [[nodiscard]] int stages() const { return static_cast<int>(forward_s.size()); }
  bool operator==(const PipelineTimes&) const = default;
};

class PipelineFormula {
 public:
  static constexpr std::string_view kind = "pipeline formula";
  virtual ~PipelineFormula() = default;
  // Exact for uniform stages without messages; with uneven stages and messages see docs/analytic-model.md. Knows neither leads
  // nor pairs: slot_walk.hpp does.
  [[nodiscard]] double seconds(const PipelineTimes& times) const;

 protected:
  // Without blocking messages.
  [[nodiscard]] virtual double pipelined_s(const PipelineTimes& times) const = 0;
};

using PipelineFormulaRegistry = config::Registry<PipelineFormula>;

// Whether all stages and chunks take equally long and a closed form is right for them.
[[nodiscard]] bool is_uniform(const PipelineTimes& times);

}  // namespace rehearse::sim
