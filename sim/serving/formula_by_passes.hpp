// Pools under Poisson arrivals by formula, pass by pass (pass_queue.hpp): what shares a pass with whom.
#pragma once

#include <map>
#include <tuple>

#include "sim/serving/pool_formula.hpp"

namespace rehearse::sim {

// What instances of both come to at a rate, but for the wait for room, and the most sequences that the walk there asked about: where as
// many fit it is the same. Infinite: it ended where no more fit.
struct WalkedPasses {
  PoolState state;
  double highest = 0;
};

// Of pools that differ in how many sequences they hold alone, under one load: by rate an instance, turns, and the percentile asked for.
struct PassWalks {
  std::map<std::tuple<double, int, double>, WalkedPasses> known;
};

// Equal prompts at random, or of any lengths on instances of both without lanes; no static batches. Others go by the moments of the load
// (pool_formula.hpp).
[[nodiscard]] bool queues_by_passes(const PoolFormula& pool, const LoadMoments& load);

// At a rate of arrivals an instance, one of `turns` that share their requests evenly. TTFT infinite: beyond its capacity, which is
// `requests_per_s` of prompts alone (of both: carried_by_passes).
[[nodiscard]] PoolState prompts_by_passes(const PoolFormula& pool, const LoadMoments& load, double rate_per_s, int turns);
[[nodiscard]] PoolState together_by_passes(const PoolFormula& pool, const LoadMoments& load, double rate_per_s, int turns);
// Whether instances of both that decode nothing yet carry the prompts; else together_by_passes() says that they do not.
[[nodiscard]] bool carries_prompts(const PoolFormula& pool, double rate_per_s);

// The highest rate an instance of both, one of `turns`, that it carries, the wait for room apart.
[[nodiscard]] double carried_by_passes(const PoolFormula& pool, int turns);

}  // namespace rehearse::sim
