// A pool by formula (docs/serving.md, "The formula"): from the prices of passes and the moments of a load.
#pragma once

#include <vector>

#include "sim/serving/company.hpp"
#include "sim/serving/deployment.hpp"
#include "sim/serving/load_moments.hpp"

namespace rehearse::sim {

// A pass with so many tokens of each of some prompts, whose ends they are, behind others in the cache, beside so many sequences.
[[nodiscard]] PassShape prompt_shape(const LoadMoments& load, double prompts, double tokens, double cached, double beside);

// One instance of a pool, as the formula sees it.
class PoolFormula {
 public:
  PoolFormula(const PoolDeployment& pool, const LoadMoments& load);

  // A decode pass of so many sequences of mean context.
  [[nodiscard]] double decode_s(double sequences) const {
    if (sequences <= 0) return 0;
    const double low = std::max(1.0, std::floor(sequences)), high = std::ceil(std::max(sequences, 1.0));
    const auto at = [&](double n) { return price_.decode(static_cast<int>(n)).seconds(n * load_.context); };
    return high > low ? at(low) + (at(high) - at(low)) * (sequences - low) : at(low);
  }
  // Decode passes of so many tokens of an answer; and of those behind the first of load.steps, at the same places.
  [[nodiscard]] double passes(double tokens) const { return pool_.rules.speculation.mean_passes(tokens); }
  [[nodiscard]] const std::vector<double>& step_passes() const { return step_passes_; }
  // Passes for each token behind the first, of an answer whose first one comes with a pass too; mean over answers.
  [[nodiscard]] double passes_a_token() const { return passes_a_token_; }
  // A whole prompt, in passes of the limit, beside so many decoding sequences; and what that costs more than the passes without it.
  struct Prompt {
    double seconds = 0, more_s = 0, passes = 1;
  };
  [[nodiscard]] Prompt prompt_s(double sequences) const;
  // Of those that come at a rate and share passes over several lanes; alone where there is one lane.
  [[nodiscard]] Prompt prompt_s(double sequences, double rate_per_s) const;
  // That an instance of prompts alone takes for each, when its lanes are full.
  [[nodiscard]] double service_s() const;
  // So many prompts in one pass beside them; and how many there can be of so many that are there, at least 1.
  [[nodiscard]] double together_s(double prompts, double sequences) const;
  [[nodiscard]] double prompts_of_a_pass(double there, double sequences) const;
  [[nodiscard]] double tokens_of_a_prompt() const { return load_.input - load_.found; }  // that are computed
  [[nodiscard]] double room_of_a_pass(double sequences) const {                          // for prompts, in tokens
    const double beside = mixes() ? std::floor(sequences) : 0;
    return std::max(1.0, static_cast<double>(pool_.rules.tokens) - beside * (1 + pool_.rules.speculation.tokens));
  }
  [[nodiscard]] double lanes() const { return static_cast<double>(pool_.rules.lanes); }
  // The passes of a prompt of so many tokens beside them.
  struct Chunk {
    double tokens = 0, seconds = 0;
  };
  [[nodiscard]] double found(double tokens) const { return load_.found * tokens / load_.input; }  // of them, in the cache
  [[nodiscard]] std::vector<Chunk> chunks(double tokens, double sequences) const;

  [[nodiscard]] Company company(double each, int instances, double bunched = 0) const {
    return {each, instances, [this](double sequences) { return decode_s(sequences); }, bunched};
  }
  // Mean of a decode pass over those that decode beside a sequence.
  [[nodiscard]] double decode_s(const Company& others) const {
    return others.mean([&](double beside) { return decode_s(1 + beside); });
  }
  [[nodiscard]] bool mixes() const { return pool_.rules.batching == Batching::continuous; }
  // Sequences that an instance holds at once, by slots and by its cache.
  [[nodiscard]] double most_sequences() const {
    const double tokens = static_cast<double>(pool_.rules.usable_pages() * pool_.rules.page);
    const double each =
        load_.input +
        (pool_.rules.overflow == Overflow::reserve || pool_.rules.batching == Batching::fixed ? load_.output : load_.output / 2);
    const auto state = static_cast<double>(pool_.rules.state_tokens());
    return std::max(1.0, std::min(static_cast<double>(pool_.rules.sequences), std::floor(tokens / (each + state))));
  }
  [[nodiscard]] const PoolDeployment& pool() const { return pool_; }
  [[nodiscard]] const LoadMoments& load() const { return load_; }

 private:
  const PoolDeployment& pool_;
  const LoadMoments& load_;
  const OperatorPassPrice& price_;
  std::vector<double> step_passes_;
  double passes_a_token_ = 1;
};

// What a pool comes to.
struct PoolState {
  // At the load's percentile: a wait of that rank and a prompt of that length together, which is an upper bound.
  double ttft_high_s = 0, tpot_high_s = 0;
  double pass_s = -1;    // a decode pass, where it is not tpot_s
  double answer_s = -1;  // behind the first token, mean; -1: its tokens times tpot_s
  bool held = false;     // beyond its capacity by caches that are not handed over yet
  [[nodiscard]] double first_pass_s() const { return pass_s >= 0 ? pass_s : tpot_s; }
  double ttft_s = 0, tpot_s = 0, batch = 0, requests_per_s = 0, queue_s = 0, prefill_s = 0, busy = 0;
};

// A closed loop of so many clients an instance, or so many at once, of whom those wait that do not fit.
[[nodiscard]] PoolState closed_loop(const PoolFormula& pool, const LoadMoments& load, double clients);
// Batches one after another, of so many at once; or of so many clients, who come again so long after they were answered: all prompts,
// then all tokens.
[[nodiscard]] PoolState in_batches(const PoolFormula& pool, const LoadMoments& load, double requests, double again_after_s = -1);
// Batches at a rate of arrivals an instance, of decoding alone or of instances of both: who comes during one makes the next. Of so many
// instances the router sends who comes to one without a batch.
[[nodiscard]] PoolState static_batches(const PoolFormula& pool, const LoadMoments& load, double rate_per_s, int instances = 1);
// Prompts and decoding at a rate of arrivals an instance, one of so many that a router looks at. TTFT infinite: beyond its capacity, which
// is `requests_per_s`.
[[nodiscard]] PoolState together(const PoolFormula& pool, const LoadMoments& load, double rate_per_s, int looked_at = 1);
// Adds what requests of instances of both wait for others to end, whose answers fill an instance, one of `turns`: queue_s, TTFT and its
// high value. More than it holds: TTFT infinite.
void put_room(PoolState& state, const PoolFormula& pool, const LoadMoments& load, double rate_per_s, int turns);
// Adds the pass that those miss who come while one runs, where engines work ahead: to queue_s, TTFT and its high value.
void put_late(PoolState& state, const PoolFormula& pool, double rate_per_s);
// Adds what prompts of a pool, at a rate of all its instances, wait for caches that hold its memory until they are handed over, so long
// after they were computed: queue_s, TTFT and its high value. More than it holds: TTFT infinite. What it adds to TTFT.
double put_held(PoolState& state, const PoolFormula& pool, const LoadMoments& load, double rate_per_s, double hand_over_s);
// Prompts alone, at a rate of all n instances.
[[nodiscard]] PoolState prompts_alone(const PoolFormula& pool, const LoadMoments& load, double rate_per_s, int instances);
// Decoding alone, at a rate an instance, one of `turns` that share their requests evenly (company.hpp).
[[nodiscard]] PoolState decoding_alone(const PoolFormula& pool, const LoadMoments& load, double rate_per_s, int turns = 1);

// The high times of a state whose means are known: of prompts and decoding at a rate an instance, and of prompts alone at n instances that
// are one queue. Nothing where the load has no percentile.
// So many sequences as the percentile of a Poisson number of that mean says.
[[nodiscard]] double high_number(double mean, const LoadMoments& load);
// A prompt of the load's percentile against a mean one.
[[nodiscard]] double high_prompt(const LoadMoments& load);
void put_high_together(PoolState& state, const PoolFormula& pool, const LoadMoments& load, double rate_per_s);
void put_high_prompts(PoolState& state, const LoadMoments& load, int instances);

// Erlang's C: the chance to wait at so many servers that are offered a load.
[[nodiscard]] double chance_to_wait(int servers, double offered);

}  // namespace rehearse::sim
