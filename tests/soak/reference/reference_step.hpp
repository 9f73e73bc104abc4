// The simulated step of a job by the reference run.
#pragma once

#include "sim/job/job.hpp"

namespace rehearse::tests {

// Seconds of the first step; nothing may fail in it. What every link carries is measured on the job's machine, one flow alone on each, so
// that SimGrid must have been idle in this process. `jitter`: every link's rate is changed by up to this share of it, at random: how
// sensitive the step is. Where collectives meet on links again and again, differences of rounding can double at each meeting.
[[nodiscard]] double reference_step(const sim::Job& job, double jitter = 0);

}  // namespace rehearse::tests
