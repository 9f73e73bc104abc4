// A first look at a large space: a few thousand points, from which good plans are reached by changing one key at a time, then two. They
// show how good a plan has to be to matter; none of them is a result.
#pragma once

#include "sim/job/tune_keys.hpp"
#include "sim/tune/goal_values.hpp"
#include "sim/tune/search.hpp"

namespace rehearse::sim {

// Depends on the space, the goals and what is taken to fit alone. errors: as Base has them. When `stop` (may be null) becomes true it looks
// no further, and what it returns is of no use.
[[nodiscard]] Threshold scouted(const Space& space, const TuneSpec& spec, const GoalValues& goals, const MeasuredErrors* errors,
                                const std::atomic<bool>* stop);

}  // namespace rehearse::sim
