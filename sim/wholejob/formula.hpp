// The whole job by formula: equations (36)-(41) and (44) of MoFa.
#pragma once

#include <cstdint>
#include <optional>

namespace rehearse::sim {

struct FormulaInput {
  double step_s = 0;
  double steps = 0;           // N_step
  double failures_per_s = 0;  // of the whole job: N_node r_f / 86400
  double repair_s = 0;        // T_repair (41), mean over failures
  double interval_steps = 1;  // K
  double save_s = 0;          // T_save: as long as training stands still
  double init_s = 0;
  bool limited_by_time = false;  // no checkpoint after the last step, so none at all where the time is up before the first

  // How many checkpoints: N_step / K.
  [[nodiscard]] double saves() const { return limited_by_time && steps < interval_steps ? 0 : steps / interval_steps; }
};

struct FormulaResult {
  double effective_s = 0;        // (37)
  double failures = 0;           // (38)
  double interrupted_s = 0;      // (39)
  double ettr = 0;               // (36), (40)
  std::optional<double> mttf_s;  // none without failures
  [[nodiscard]] double total_s() const { return effective_s + interrupted_s; }
};

[[nodiscard]] FormulaResult formula(const FormulaInput& input);

// The steps that so much time, T_init in it, is enough for.
[[nodiscard]] double steps_in(double seconds, const FormulaInput& input);

// (44): sqrt(2 T_save / failures_per_s), the interval in seconds of Young (1974) and Daly (2006); infinite without failures.
[[nodiscard]] double optimum_interval_s(const FormulaInput& input);
// The better of the whole numbers of steps around it, at least 1 and at most all steps.
[[nodiscard]] std::int64_t optimum_interval_steps(const FormulaInput& input);

}  // namespace rehearse::sim
