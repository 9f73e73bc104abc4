// The tables of which the console report is made. Times in milliseconds.
#pragma once

#include <string>

#include "sim/compare/compare.hpp"
#include "sim/compare/explain.hpp"
#include "sim/report/table.hpp"
#include "sim/result.hpp"

namespace rehearse::sim {

// Milliseconds with as many decimals as a step of that length deserves: one from a second on, else three.
class Milliseconds {
 public:
  explicit Milliseconds(double step_s) : decimals_(step_s >= 1 ? 1 : 3) {}
  [[nodiscard]] std::string operator()(double seconds) const;
  [[nodiscard]] std::string difference(double seconds) const;  // with its sign

 private:
  int decimals_;
};

[[nodiscard]] std::string percent(double share);  // "12.3 %"

[[nodiscard]] Table phase_table(const StepResult& result);  // phase, time, share of the step
// "experts: rank 3 gets 4.2 times the mean in layer 17, micro-batch 5; 1.3 % of tokens dropped; chunks 1 to 8"; "" when there is nothing to
// say.
[[nodiscard]] std::string experts_line(const StepResult& result);
// "3 steps: 812.1, 820.4, 799.0 ms; 799.0 to 820.4 ms"; "" for a single one.
[[nodiscard]] std::string steps_line(const StepResult& result);
[[nodiscard]] Table drop_table(const StepResult& result);        // what experts' capacity dropped; no rows when nothing
[[nodiscard]] Table stage_table(const StepResult& result);       // a pipeline stage a row, a phase that occurs a column
[[nodiscard]] Table collective_table(const StepResult& result);  // as nccl-tests print them, GB = 10^9 bytes
[[nodiscard]] Table comparison_table(const Comparison& comparison);
[[nodiscard]] Table explanation_table(const Explanation& explanation);
[[nodiscard]] Table effect_table(const std::vector<FeatureEffect>& effects, double step_s);

}  // namespace rehearse::sim
