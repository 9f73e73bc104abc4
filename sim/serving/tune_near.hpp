// Deployments beside those that the search by formula found (docs/serving.md, "Tuning"): it takes a wait of the percentile and a prompt of
// its length together and a load that never ends, which asks for too much, and knows two moments of a queue, which may ask for too little.
#pragma once

#include <vector>

#include "sim/serving/tune_formula.hpp"

namespace rehearse::sim {

// A promise so much looser is what is looked for.
inline constexpr double looser_ttft = 2, looser_tpot = 1.2;

// By simulation, while there is a deployment that costs less than the chosen one, or none is chosen: of those found with a looser promise
// the ones that miss it by the least by formula; where one keeps the promise, those with an instance less; where one does not, those with
// an instance more of what was too slow. From the cheapest on, at most twice as many as are simulated otherwise. What is chosen then stands
// among the best. While none keeps the promise: from those that came the nearest, with more instances; where none does in the end, a note
// says what was tried.
void settle_by_simulation(const TuneSides& sides, const TuneFormula& formula, const std::vector<TunedDeployment>& looser,
                          ServingTuning& tuning);

}  // namespace rehearse::sim
