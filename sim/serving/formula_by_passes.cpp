#include "sim/serving/formula_by_passes.hpp"

#include <algorithm>
#include <cmath>
#include <memory>

#include "sim/serving/cut_prompts.hpp"
#include "sim/serving/pass_queue.hpp"
#include "sim/serving/settling.hpp"
#include "sim/serving/token_spread.hpp"
#include "sim/serving/unlike_passes.hpp"

namespace rehearse::sim {
namespace {

constexpr int settling_rounds = 60;  // at most: bounds are halved from the twentieth on
constexpr int rough_rounds = 8;      // ... of a walk that says only where another one begins
constexpr double settled_within = 1e-4, nearly_settled_within = 1e-3, roughly_settled_within = 3e-3;
constexpr double chances_within = 1e-3, closest_chances = 1e-7;  // of how far the last round was from settled; and at least
constexpr double highest_load = 0.999, clearly_too_much = 1.05;
constexpr int most_looks_back = 2;
constexpr double few_states = 300;
constexpr double endless = 1e9;  // sequences: as many as anything that is not a number

// Sequences at any time, and those that one sees in its passes.
struct Beside {
  double batch = 0, seen = 0;
};

PoolState beyond(double capacity_per_s = 0) {
  PoolState out;
  out.ttft_s = INFINITY;
  out.requests_per_s = capacity_per_s;
  return out;
}

}  // namespace

bool queues_by_passes(const PoolFormula& pool, const LoadMoments& load) {
  const InstanceRules& rules = pool.pool().rules;
  if (load.arrival_variation != 1 || load.rate_per_s <= 0 || rules.batching == Batching::fixed) return false;
  if (load.input_variation <= 0) return true;
  return rules.role == Role::both && pool.lanes() <= 1 && (rules.chunked_prefill || pool.room_of_a_pass(0) >= pool.tokens_of_a_prompt());
}

PoolState prompts_by_passes(const PoolFormula& pool, const LoadMoments& load, double rate_per_s, int turns) {
  const PassUnits cut(pool, 0, 1);
  const PassQueue queue = cut.queue(pool, rate_per_s, turns, 0);
  const double capacity = cut.prompts_of_a_pass() / queue.pass_s.back();
  if (rate_per_s >= highest_load * capacity) return beyond(capacity);
  const QueuedPasses passes(queue);
  PoolState out;
  out.queue_s = passes.queue_s();
  out.prefill_s = passes.prefill_s();
  out.busy = passes.busy();
  out.ttft_s = out.queue_s + out.prefill_s;
  out.requests_per_s = rate_per_s;
  put_high_prompts(out, load, turns);
  return out;
}

bool carries_prompts(const PoolFormula& pool, double rate_per_s) {
  const PassUnits cut(pool, 0, 1);
  return rate_per_s * cut.seconds(pool, cut.most(), pool.mixes() ? 1 : 0) / cut.prompts_of_a_pass() < highest_load;
}

namespace {

std::unique_ptr<const PromptPasses> chain_of(const PassQueue& queue, PassChances& known) {
  if (queue.sizes.empty()) return std::make_unique<QueuedPasses>(queue, &known);
  return std::make_unique<UnlikePasses>(queue);
}

// A share of those seen that are there because one is, so that as many as are seen stay possible: below 0 no more than 1 - 1 / share are.
double possible(double bunched, double seen) {
  const double least = -1 / (1 + std::floor(seen));
  return bunched > least ? bunched : least;
}

// The share of those that a sequence sees beside it that are more than so many as are there in a pass. Of a chain that has not settled it
// may be far below 0.
double bunched_of(const PromptPasses& passes, const LoadMoments& load, const PoolFormula& pool, double rate_per_s, double seen) {
  double there = 0;
  for (const double tokens : pool.step_passes()) there += rate_per_s * passes.token_s() * tokens / static_cast<double>(load.steps.size());
  return seen > 0 ? possible(1 - there / seen, seen) : 0;
}

double most_passes_of(const PoolFormula& pool) { return pool.step_passes().empty() ? 0 : std::ranges::max(pool.step_passes()); }

double moved_by(const Beside& before, const Beside& after) {
  const auto share = [](double from, double to) { return std::abs(to - from) / (1 + to); };
  return std::max(share(before.batch, after.batch), share(before.seen, after.seen));
}

// The passes beside so many sequences: as prompts meet them, and as a sequence does beside `others`. Of the time without prompts nobody
// decodes for the chance that nobody is there, in spells of `idle_each_s`.
PassQueue queue_beside(const PoolFormula& pool, const PassUnits& cut, double rate_per_s, int turns, double batch, const Company& others,
                       double idle_each_s) {
  const double beside = 1 + others.mean([](double number) { return number; });
  PassQueue queue = cut.queue(pool, rate_per_s, turns, batch);
  const double nobody = std::min(pool.company(batch, turns).nobody(), 1 - 1e-9);
  queue.pass_s[0] = pool.decode_s(std::max(1.0, batch / (1 - nobody)));
  queue.idle = nobody * queue.pass_s[0] / (nobody * queue.pass_s[0] + (1 - nobody) * idle_each_s);
  queue.most_tokens = most_passes_of(pool);
  queue.beside_s = queue.pass_s;
  queue.beside_s[0] = pool.decode_s(others);
  for (int u = 1; u <= cut.most() && pool.mixes(); ++u)
    queue.beside_s[static_cast<std::size_t>(u)] = std::max(cut.seconds(pool, u, beside), queue.beside_s[0]);
  queue.ahead = pool.pool().rules.ahead && !pool.step_passes().empty() && pool.step_passes().front() <= 1;
  return queue;
}

// What is behind the first tokens, of load.steps: seconds, their mean, that of a token, and the sequences that one sees beside it.
struct Answers {
  std::vector<double> each_s;
  double mean_s = 0, tpot_s = 0, beside = 0;
};

Answers answers_of(const PoolFormula& pool, const LoadMoments& load, const PassQueue& queue, const PromptPasses& passes) {
  Answers out;
  const auto number = static_cast<double>(load.steps.size());
  for (std::size_t i = 0; i < load.steps.size(); ++i) {
    // Where passes are put together ahead those who came during a prompt's own pass miss the first one behind it.
    const double steps = pool.step_passes()[i];
    double seconds = passes.tokens_s(steps);
    if (pool.pool().rules.ahead) seconds = steps > 1 ? queue.beside_s[0] + passes.tokens_s(steps - 1) : steps * passes.first_ahead_s();
    out.each_s.push_back(seconds);
    out.mean_s += seconds / number;
    out.beside += passes.sequences_beside(steps) / number;
    out.tpot_s += seconds / load.steps[i] / number;
  }
  return out;
}

// What is asked of an instance: at a rate of arrivals, one of `turns`. Roughly: only where it settles, unlike prompts counted coarsely.
struct AskedOf {
  const PoolFormula& pool;
  const LoadMoments& load;
  double rate_per_s = 0;
  int turns = 1;
  bool roughly = false;
};

// What a round of a walk leaves to the next one.
struct LastRound {
  double idle_each_s;
  double bunched = 0, moved = 1;
  PassChances known = {};
  int units = 0;
};

// The passes beside so many sequences, and what requests meet there.
class MetPasses {
 public:
  MetPasses(const AskedOf& asked, const Beside& now, LastRound& last)
      : asked_(asked),
        others_(asked.pool.mixes() || asked.turns == 1 ? asked.pool.company(now.seen, 1, possible(last.bunched, now.seen))
                                                       : asked.pool.company(now.seen, asked.turns)),
        cut_(asked.pool, now.batch, asked.turns, asked.roughly),
        queue_(queue_beside(asked.pool, cut_, asked.rate_per_s, asked.turns, now.batch, others_, last.idle_each_s)) {
    if (asked.roughly) queue_.states = few_states;
    queue_.within = std::clamp(chances_within * last.moved, closest_chances, chances_within);
    if (too_many_prompts()) return;
    if (cut_.units() != last.units) last.known = {};
    last.units = cut_.units();
    passes_ = chain_of(queue_, last.known);
    if (passes_->idle_each_s() > 0) last.idle_each_s = passes_->idle_each_s();
    answers_ = answers_of(asked.pool, asked.load, queue_, *passes_);
    last.bunched = bunched_of(*passes_, asked.load, asked.pool, asked.rate_per_s, answers_.beside);
  }
  // Alone, whatever is decoded beside them; nothing else is known then.
  [[nodiscard]] bool too_many_prompts() const { return asked_.rate_per_s >= most_prompts_per_s(); }
  [[nodiscard]] double most_prompts_per_s() const { return highest_load * cut_.prompts_of_a_pass() / queue_.beside_s.back(); }
  [[nodiscard]] double answer_s() const { return asked_.load.step_share * answers_.mean_s; }
  // At which so many places come free of sequences.
  [[nodiscard]] double free_per_s(double places) const { return too_many_prompts() ? 0 : places / (passes_->prefill_s() + answer_s()); }
  [[nodiscard]] Beside leads_to() const { return {asked_.rate_per_s * answer_s(), asked_.load.step_share * answers_.beside}; }
  [[nodiscard]] PoolState state(double batch) const {
    PoolState out;
    out.queue_s = passes_->queue_s();
    out.prefill_s = passes_->prefill_s();
    out.busy = passes_->busy();
    out.tpot_s = answers_.tpot_s;
    out.answer_s = answer_s();
    out.batch = batch;
    out.ttft_s = out.queue_s + out.prefill_s;
    out.requests_per_s = asked_.rate_per_s;
    if (asked_.pool.pool().rules.speculation.tokens > 0 && !asked_.load.steps.empty())
      out.pass_s = out.tpot_s / asked_.pool.passes_a_token();
    if (asked_.load.percentile <= 0) return out;
    out.ttft_high_s = passes_->first_token_within_s(asked_.load.percentile);
    out.tpot_high_s = token_within_s(asked_.pool, asked_.load, queue_, *passes_, others_, answers_.each_s);
    return out;
  }

 private:
  const AskedOf asked_;
  Company others_;
  PassUnits cut_;
  PassQueue queue_;
  std::unique_ptr<const PromptPasses> passes_;
  Answers answers_;
};

struct Walk {
  bool carried = false;
  Beside at = {};  // where it settled
  double slope = 0, bunched = 0;
  double highest = 0;  // most sequences that it asked about
  PoolState state = {};
};

// More sequences make passes longer, and those more sequences: where that settles, of as many as fit. Where it jumps over the place it is
// at the jump. From where another one settled. `clearly`: it is not carried only where it is so much too much.
Walk walk_from(const AskedOf& asked, Walk walk, double most, double within, double clearly) {
  LastRound last{.idle_each_s = 1 / asked.rate_per_s, .bunched = walk.bunched};
  Settling batch(walk.at.batch, walk.slope);
  double seen_each = walk.at.batch > 0 ? walk.at.seen / walk.at.batch : 1;
  // Where a step led too far: where passes grow faster than their sequences these settle below, too. A rough walk that ended at the most
  // has looked there.
  int looks_back = asked.roughly || walk.at.batch < most ? most_looks_back : 0;
  for (int round = 1;; ++round) {
    walk.highest = std::max({walk.highest, batch.at(), seen_each * batch.at()});
    walk.at.batch = std::min(most, batch.at());
    walk.at.seen = std::min(most, seen_each * walk.at.batch);
    const MetPasses met(asked, walk.at, last);
    if (met.too_many_prompts() && walk.at.batch > 1 && looks_back-- > 0) {
      batch.step_back(walk.at.batch);
      continue;
    }
    if (met.too_many_prompts()) return {.carried = asked.rate_per_s < clearly * met.most_prompts_per_s(), .highest = walk.highest};
    Beside next = met.leads_to();
    for (double* number : {&next.batch, &next.seen}) *number = *number >= 0 && *number < endless ? *number : endless;
    walk.highest = std::max({walk.highest, next.batch, next.seen});
    // Nothing below settles, and more make passes only longer.
    if (round == 1 && next.batch > clearly_too_much * most) return {.carried = false, .highest = INFINITY};
    const bool too_many = walk.at.batch >= most && next.batch > most;
    if (too_many && looks_back-- > 0) {
      batch.step_back(most);
      continue;
    }
    const Beside then{std::min(most, next.batch), std::min(most, next.seen)};  // no more fit, however many come
    last.moved = moved_by(walk.at, then);
    batch.take(walk.at.batch, next.batch);
    seen_each = next.batch > 0 ? next.seen / next.batch : 1;
    if (last.moved >= within && !too_many && !batch.jumps(within) && round < (asked.roughly ? rough_rounds : settling_rounds)) continue;
    walk.carried = !too_many || next.batch < clearly * most;
    walk.slope = batch.slope();
    walk.bunched = last.bunched;
    if (!asked.roughly && walk.carried) walk.state = met.state(walk.at.batch);
    return walk;
  }
}

// From where the short chain of one instance settles, which counts unlike prompts coarsely.
WalkedPasses walk_together(const PoolFormula& pool, const LoadMoments& load, double rate_per_s, int turns, double most) {
  const bool unlike = load.input_variation > 0;
  const auto asked_about = [most](double highest) { return highest > most ? INFINITY : highest; };  // it ended where no more fit
  Walk walk;
  if (unlike || turns > 1) {
    const AskedOf one{.pool = pool, .load = load, .rate_per_s = rate_per_s, .roughly = true};
    walk = walk_from(one, {}, most, roughly_settled_within, clearly_too_much);
    if (!walk.carried) return {beyond(), asked_about(walk.highest)};
  }
  walk = walk_from({.pool = pool, .load = load, .rate_per_s = rate_per_s, .turns = turns}, walk, most,
                   unlike ? nearly_settled_within : settled_within, 1);
  return {walk.carried ? walk.state : beyond(), asked_about(walk.highest)};
}

constexpr double roughly_carried_within = 2e-3, carried_within = 5e-4;
constexpr int carried_rounds = 24;

// Where all passes are full of prompts, the sequences that their answers come to, which lengthen passes and leave prompts less room: by
// bisection; as many as fit where they come to no fewer.
double sequences_of_full_passes(const PoolFormula& pool, double most) {
  constexpr double within = 1e-3;
  double steps = 0;
  for (const double tokens : pool.step_passes()) steps += tokens / static_cast<double>(pool.step_passes().size());
  const auto come_to = [&](double sequences) {
    return highest_load * pool.load().step_share * steps * PassUnits(pool, sequences, 1, true).prompts_of_a_pass();
  };
  if (come_to(most) >= most) return most;
  double low = 0, high = most;
  while (high - low > within * (1 + low)) {
    const double sequences = (low + high) / 2;
    (come_to(sequences) > sequences ? low : high) = sequences;
  }
  return low;
}

// The rate at which places come free as often as they are asked for. They fall with it, near where prompts fill all passes about as a
// square does: by secants of the roots. As they fall, those at a rate are a bound on the other side of it.
class CarriedRate {
 public:
  explicit CarriedRate(double end) : end_(end), high_(end), at_(end / 2), last_{end, -std::sqrt(end)} {}
  [[nodiscard]] double at() const { return at_; }
  [[nodiscard]] double moved() const { return std::abs(at_ / last_.rate - 1); }
  // Others are asked from here on, whose answers are much the same; bounds are the first ones' no more.
  void ask_others() {
    low_ = 0;
    high_ = end_;
    others_ = true;
  }
  void take(double free_per_s) {
    constexpr double near = 0.01, beyond = 1e-3;  // near where a secant leads it is followed wherever bounds are
    const Point now{at_, std::sqrt(free_per_s) - std::sqrt(at_)};
    low_ = std::max(low_, std::min(at_, free_per_s) * (1 - beyond));
    high_ = std::min(high_, std::max(at_, free_per_s) * (1 + beyond));
    if (!others_) slope_ = (now.spare - last_.spare) / (now.rate - last_.rate);
    others_ = false;
    last_ = now;
    const double straight = slope_ < 0 ? now.rate - now.spare / slope_ : INFINITY;
    const bool secant = straight > low_ && straight < high_ && (++asked_ % 4 > 0 || std::abs(straight / at_ - 1) < near);
    at_ = secant ? straight : std::sqrt(std::max(low_, high_ / most_apart) * high_);
  }

 private:
  static constexpr double most_apart = 1e4;
  struct Point {
    double rate = 0, spare = 0;
  };
  double end_, low_ = 0, high_, at_, slope_ = 0;
  Point last_;
  bool others_ = false;
  int asked_ = 0;
};

}  // namespace

// Beside as many sequences as fit the rate at which they take all places: of one instance roughly, and from there; or where prompts alone
// fill all passes before that, theirs.
double carried_by_passes(const PoolFormula& pool, int turns) {
  const double places = pool.most_sequences(), batch = pool.mixes() ? sequences_of_full_passes(pool, places) : places;
  LastRound last{.idle_each_s = 1}, last_roughly = last;
  double decode = batch;  // of the places
  const auto beside = [&](double rate_per_s, bool roughly) {
    return MetPasses({.pool = pool, .load = pool.load(), .rate_per_s = rate_per_s, .turns = roughly ? 1 : turns, .roughly = roughly},
                     {decode, decode}, roughly ? last_roughly : last);
  };
  const double most_per_s = beside(INFINITY, true).most_prompts_per_s();
  if (batch < places) return most_per_s;
  CarriedRate rate(most_per_s);
  const auto settle = [&](bool roughly, double within) {
    for (int round = 0; round == 0 || (round < carried_rounds && rate.moved() > within); ++round) {
      const MetPasses met = beside(rate.at(), roughly);
      const double free_per_s = met.free_per_s(places);
      if (free_per_s > 0) decode = std::min(places, free_per_s * met.answer_s());
      rate.take(free_per_s);
    }
  };
  settle(true, roughly_carried_within);
  rate.ask_others();
  settle(false, carried_within);
  return rate.at();
}

namespace {

PoolState shared_walk(const PoolFormula& pool, const LoadMoments& load, double rate_per_s, int turns) {
  const double most = pool.most_sequences();
  PassWalks* shared = pool.pool().walks.get();
  if (shared == nullptr) return walk_together(pool, load, rate_per_s, turns, most).state;
  const auto [at, fresh] = shared->known.try_emplace({rate_per_s, turns, load.percentile});
  if (fresh || at->second.highest > most) at->second = walk_together(pool, load, rate_per_s, turns, most);
  return at->second.state;
}

}  // namespace

PoolState together_by_passes(const PoolFormula& pool, const LoadMoments& load, double rate_per_s, int turns) {
  PoolState out = shared_walk(pool, load, rate_per_s, turns);
  put_late(out, pool, rate_per_s);
  put_room(out, pool, load, rate_per_s, turns);
  return out;
}

}  // namespace rehearse::sim
