// Memory-aware chunk tuning (MemFine, arXiv 2511.21431).
#pragma once

#include "sim/job/job.hpp"

namespace rehearse::sim {

// The job as it is predicted and simulated: reading it leaves the number of chunks open where it says `auto`. For every layer with experts
// the smallest threshold with which it fits whenever it is at work, with the tokens that its hottest rank gets; the largest one when none
// does. The paper's C = ceil(s'/s'_max) rounded up to a threshold, with s'_max taken from the whole memory model instead of its closed
// form.
[[nodiscard]] Job tuned(Job job);

}  // namespace rehearse::sim
