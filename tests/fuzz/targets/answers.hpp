// What must hold of every job that was accepted.
#pragma once

#include "sim/job/job.hpp"

namespace rehearse::fuzz {

// Throws Nonsense where the predicted step is not a positive time, some memory not a number, or the resolved job not the same job again.
void check_answers(const sim::Job& job);

}  // namespace rehearse::fuzz
