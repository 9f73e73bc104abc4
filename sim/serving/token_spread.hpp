// The time per token that a share of the answers keeps to, by formula: of each number of tokens a gamma distribution above the time that
// they take alone, as far apart as the prompts in its passes and the sequences beside it are.
#pragma once

#include <vector>

#include "sim/serving/pass_queue.hpp"
#include "sim/serving/pool_formula.hpp"

namespace rehearse::sim {

// At the load's percentile; others: beside a sequence; answers_s: means behind the first token, of load.steps.
[[nodiscard]] double token_within_s(const PoolFormula& pool, const LoadMoments& load, const PassQueue& queue, const PromptPasses& passes,
                                    const Company& others, const std::vector<double>& answers_s);

}  // namespace rehearse::sim
