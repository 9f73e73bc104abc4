#include "sim/serving/formula_by_passes.hpp"

#include <algorithm>
#include <cmath>
#include <memory>

#include "sim/serving/cut_prompts.hpp"
#include "sim/serving/pass_queue.hpp"
#include "sim/serving/token_spread.hpp"
#include "sim/serving/unlike_passes.hpp"

namespace rehearse::sim {
namespace {

constexpr int settling_rounds = 60;
constexpr double settled_within = 1e-5, nearly_settled_within = 1e-3;
constexpr double chances_within = 1e-3, closest_chances = 1e-7;  // of how far the last round was from settled; and at least
constexpr double highest_load = 0.999;

// Sequences at any time, and those that one sees in its passes.
struct Beside {
  double batch = 0, seen = 0;
  [[nodiscard]] Beside minus(const Beside& other) const { return {batch - other.batch, seen - other.seen}; }
  [[nodiscard]] Beside less(double by, const Beside& other) const { return {batch - by * other.batch, seen - by * other.seen}; }
  [[nodiscard]] double times(const Beside& other) const { return batch * other.batch + seen * other.seen; }
  [[nodiscard]] bool within(double most) const { return batch >= 0 && seen >= 0 && batch <= most && seen <= most; }
};

// A fixed point in two numbers: where the last three steps lead to were they straight (Anderson), by the last two where that leads nowhere.
class Accelerated {
 public:
  [[nodiscard]] Beside after(const Beside& from, const Beside& to, double most) {
    steps_.push_back({to, to.minus(from)});
    if (steps_.size() > 3) steps_.erase(steps_.begin());
    Beside led = to;
    if (!(steps_.size() == 3 && by_two(led, most)) && steps_.size() >= 2) static_cast<void>(by_one(led, most));
    // More sequences make passes longer, and those more sequences: a step never leads too far.
    const auto no_shorter = [](double begin, double step, double far) { return step >= begin ? std::max(step, far) : std::min(step, far); };
    return {no_shorter(from.batch, to.batch, led.batch), no_shorter(from.seen, to.seen, led.seen)};
  }
  [[nodiscard]] double highest() const { return highest_; }  // that it was led to, or would have been

 private:
  struct Step {
    Beside to, change;
  };
  [[nodiscard]] bool by_two(Beside& led, double most) {
    const Step &a = steps_[0], &b = steps_[1], &c = steps_[2];
    const Beside one = c.change.minus(b.change), two = c.change.minus(a.change);
    const double area = one.batch * two.seen - one.seen * two.batch;
    if (std::abs(area) < flat * std::sqrt(one.times(one) * two.times(two))) return false;
    const double by_one = (c.change.batch * two.seen - c.change.seen * two.batch) / area;
    const double by_two = (one.batch * c.change.seen - one.seen * c.change.batch) / area;
    return leads(c.to.less(by_one, c.to.minus(b.to)).less(by_two, c.to.minus(a.to)), led, most);
  }
  [[nodiscard]] bool by_one(Beside& led, double most) {
    const Step &b = steps_[steps_.size() - 2], &c = steps_.back();
    const Beside change = c.change.minus(b.change);
    return leads(c.to.less(c.change.times(change) / change.times(change), c.to.minus(b.to)), led, most);
  }
  [[nodiscard]] bool leads(const Beside& to, Beside& led, double most) {
    if (!std::isfinite(to.batch + to.seen) || !to.within(INFINITY)) return false;
    highest_ = std::max({highest_, to.batch, to.seen});
    if (!to.within(most)) return false;
    led = to;
    return true;
  }

  static constexpr double flat = 1e-3;  // the sine of an angle between two steps: of less, a third point would be far away
  std::vector<Step> steps_;
  double highest_ = 0;
};

// Where prompts alone are too many, it is not known.
PoolState beyond(double capacity_per_s) {
  PoolState out;
  out.ttft_s = INFINITY;
  out.requests_per_s = capacity_per_s;
  return out;
}

bool too_many_prompts(const PoolState& state) { return !std::isfinite(state.ttft_s) && state.requests_per_s <= 0; }

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

// The share of those that a sequence sees beside it that are more than so many as are there in a pass. Of a chain that has not settled it
// may be far below 0, where no more than 1 - 1 / share are ever there: so many as are seen stay possible.
double bunched_of(const PromptPasses& passes, const LoadMoments& load, const PoolFormula& pool, double rate_per_s, double seen) {
  double there = 0;
  for (const double tokens : pool.step_passes()) there += rate_per_s * passes.token_s() * tokens / static_cast<double>(load.steps.size());
  return seen > 0 ? std::max(1 - there / seen, -1 / (1 + std::floor(seen))) : 0;
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

// Where no more than so many sequences fit. Whether prompts are too many does not depend on how evenly they come, and the chain of
// instances that do not take turns is short.
WalkedPasses walk_together(const PoolFormula& pool, const LoadMoments& load, double rate_per_s, int turns, double most,
                           double within = settled_within) {
  WalkedPasses walk;
  if (turns > 1) walk = walk_together(pool, load, rate_per_s, 1, most, nearly_settled_within);
  if (too_many_prompts(walk.state)) return walk;
  Beside now;
  const bool unlike = load.input_variation > 0;
  if (unlike) {
    within = nearly_settled_within;
    if (std::isfinite(walk.state.ttft_s)) now = {walk.state.batch, walk.state.batch};
  }
  walk = {.state = {}, .highest = unlike ? walk.highest : 0};  // what it began with, too
  PoolState& out = walk.state;
  double idle_each_s = 1 / rate_per_s;
  Accelerated faster;
  double bunched = 0, moved = 1;
  PassChances known;
  int units = 0;
  for (int round = 0; round < settling_rounds; ++round) {
    const Company others = pool.mixes() || turns == 1 ? pool.company(now.seen, 1, bunched) : pool.company(now.seen, turns);
    const PassUnits cut(pool, now.batch, turns);
    PassQueue queue = queue_beside(pool, cut, rate_per_s, turns, now.batch, others, idle_each_s);
    queue.within = std::clamp(chances_within * moved, closest_chances, chances_within);
    if (rate_per_s * queue.beside_s.back() / cut.prompts_of_a_pass() >= highest_load) return {beyond(0), walk.highest};
    if (cut.units() != units) known = {};
    units = cut.units();
    const std::unique_ptr<const PromptPasses> passes = chain_of(queue, known);
    out.queue_s = passes->queue_s();
    out.prefill_s = passes->prefill_s();
    out.busy = passes->busy();
    if (passes->idle_each_s() > 0) idle_each_s = passes->idle_each_s();
    const Answers answers = answers_of(pool, load, queue, *passes);
    out.tpot_s = answers.tpot_s;
    out.answer_s = load.step_share * answers.mean_s;
    const double next = rate_per_s * out.answer_s, seen = load.step_share * answers.beside;
    if (next > most) return {beyond(most / out.answer_s), INFINITY};
    walk.highest = std::max({walk.highest, next, seen});
    bunched = bunched_of(*passes, load, pool, rate_per_s, answers.beside);
    const Beside then{next, std::min(most, seen)};  // no more fit, however many come
    moved = moved_by(now, then);
    if (load.percentile > 0 && (moved < within || round + 1 == settling_rounds)) {
      out.ttft_high_s = passes->first_token_within_s(load.percentile);
      out.tpot_high_s = token_within_s(pool, load, queue, *passes, others, answers.each_s);
    }
    if (moved < within) break;
    now = faster.after(now, then, most);
    walk.highest = std::max(walk.highest, faster.highest());
  }
  out.batch = now.batch;
  if (pool.pool().rules.speculation.tokens > 0 && !load.steps.empty()) out.pass_s = out.tpot_s / pool.passes_a_token();
  out.ttft_s = out.queue_s + out.prefill_s;
  out.requests_per_s = rate_per_s;
  return walk;
}

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
