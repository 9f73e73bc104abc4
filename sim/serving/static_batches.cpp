#include "sim/serving/static_batches.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace rehearse::sim {
namespace {

// One of so many: prompts in full passes, of which a mean one ends `first_s` after the first begins, then all tokens.
struct FixedBatch {
  double prompts_s = 0, first_s = 0, line_s = 0;
  [[nodiscard]] double seconds() const { return prompts_s + line_s; }
};

FixedBatch fixed_batch(const PoolFormula& pool, const LoadMoments& load, double requests) {
  FixedBatch out;
  const double fit = pool.prompts_of_a_pass(requests, 0);
  double left = requests;
  while (left > 1e-9) {
    const double prompts = std::min(left, fit);
    out.prompts_s += fit > 1 ? pool.together_s(prompts, 0) : prompts * pool.prompt_s(0).seconds;
    out.first_s += prompts / requests * out.prompts_s;
    left -= fit;
  }
  out.line_s = pool.pool()
                   .price->decode(static_cast<int>(std::ceil(requests)))
                   .seconds(requests * (load.input + 1), requests, std::max(0.0, load.output - 1));
  return out;
}

}  // namespace

// Batches one after another: all prompts, then all tokens; the last one holds the rest. In a closed loop of more clients than fit they go
// on for ever, and who is answered waits for all others.
PoolState in_batches(const PoolFormula& pool, const LoadMoments& load, double requests, double again_after_s) {
  PoolState out;
  out.batch = std::min(requests, pool.most_sequences());
  const FixedBatch full = fixed_batch(pool, load, out.batch);
  const double steps = std::max(1.0, load.output - 1);
  out.prefill_s = full.first_s;
  out.tpot_s = load.output > 1 ? (full.seconds() - full.first_s) / steps : 0;
  out.busy = 1;
  const double whole = std::floor(requests / out.batch), rest = requests - whole * out.batch;
  if (again_after_s >= 0) {
    const double between_s = requests > out.batch ? 0 : again_after_s;
    out.requests_per_s = out.batch / (full.seconds() + between_s);
    out.queue_s = (requests - out.batch) / out.requests_per_s;
  } else {
    const FixedBatch last = rest > 0 ? fixed_batch(pool, load, rest) : FixedBatch{};
    const double share = rest / requests;
    out.queue_s = ((1 - share) * (whole - 1) / 2 + share * whole) * full.seconds();
    out.prefill_s += share * (last.first_s - full.first_s);
    if (load.output > 1 && rest > 0) out.tpot_s += share * ((last.seconds() - last.first_s) / steps - out.tpot_s);
    out.requests_per_s = requests / (whole * full.seconds() + last.seconds());
  }
  out.ttft_s = out.queue_s + out.prefill_s;
  return out;
}

// Of instances of both it begins with their prompts.
StaticBatch static_batch(const PoolFormula& pool, const LoadMoments& load, double sequences) {
  const bool both = pool.pool().rules.role == Role::both;
  const FixedBatch prompts = both ? fixed_batch(pool, load, sequences) : FixedBatch{};
  StaticBatch out{.seconds = prompts.prompts_s, .first_s = prompts.first_s};
  const std::vector<double> steps = load.steps.empty() ? std::vector<double>{0} : load.steps;
  const double firsts = both ? 0 : 1;  // first tokens that come with a pass of decoding
  const auto all = static_cast<double>(steps.size());
  double before = -firsts, answer_s = prompts.prompts_s - prompts.first_s;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const double ended = static_cast<double>(i) / all, runs = steps[i] - before;
    const double pass_s = pool.decode_s(std::max(1.0, sequences * (1 - ended)));
    answer_s += runs * pass_s;
    if (steps[i] + firsts > 0) out.tpot_s += answer_s / (steps[i] + firsts) / all;
    out.seconds += runs * pass_s * (1 - std::pow(ended, sequences));  // while anybody of the batch goes on
    before = steps[i];
  }
  return out;
}

std::vector<double> unlike_batches(const PoolFormula& pool, const LoadMoments& load, int sequences, int shares) {
  const bool both = pool.pool().rules.role == Role::both;
  const double prompts_s = both ? fixed_batch(pool, load, sequences).prompts_s : 0, pass_s = pool.decode_s(sequences);
  std::vector<double> out;
  for (int i = 0; i < shares; ++i) {
    const double share = std::pow((i + 0.5) / shares, 1.0 / sequences), with_steps = (share - 1 + load.step_share) / load.step_share;
    const double steps = load.steps.empty() || with_steps <= 0
                             ? 0
                             : load.steps[static_cast<std::size_t>(with_steps * static_cast<double>(load.steps.size()))];
    const double longer = load.steps.size() > 1 ? 1 : 1 + (load.input_at(share) / load.input - 1) / sequences;
    out.push_back(prompts_s * longer + (steps + (both ? 0 : 1)) * pass_s);
  }
  return out;
}

namespace {

// At a constant rate of less than one a batch those wait who come during a long one. A chain from batch to batch, by the part of an
// interval until the next one comes, and by how many make the batch: all who came during the one before, or who comes to an idle instance.
struct Waits {
  double mean_s = 0, share = 0;  // of all; those that wait
};
Waits waits_at_constant_rate(const PoolFormula& pool, const LoadMoments& load, double rate_per_s) {
  constexpr int parts = 64, most = 6, rounds = 60, shares = 32;
  constexpr double hardly = 1e-9;
  std::vector<std::vector<double>> batches;
  for (int n = 1; n <= most; ++n) batches.push_back(unlike_batches(pool, load, n, shares));
  using Chances = std::vector<std::vector<double>>;
  Chances now(most, std::vector<double>(parts, 0));
  now[0][parts - 1] = 1;
  double waits = 0, served = 0, waiting = 0;
  for (int round = 0; round < rounds; ++round) {
    Chances next(most, std::vector<double>(parts, 0));
    waits = served = waiting = 0;
    for (int at = 0; at < most * parts; ++at) {
      const int n = at / parts, part = at % parts;
      const double chance = now[n][part] / static_cast<double>(batches[n].size());
      if (chance < hardly) continue;
      for (const double seconds : batches[n]) {
        const double intervals = seconds * rate_per_s, first = (part + 1.0) / parts;
        const double come = intervals > first ? 1 + std::floor(intervals - first) : 0;
        served += chance * (n + 1);
        waiting += chance * come;
        waits += chance * (come * (intervals - first) - come * (come - 1) / 2);
        const double place = come > 0 ? (first + come - intervals) * parts - 1 : parts - 1;
        const int to = static_cast<int>(std::clamp(come, 1.0, double{most})) - 1;
        const int low = std::clamp(static_cast<int>(std::floor(place)), 0, parts - 1), high = std::min(low + 1, parts - 1);
        const double higher = std::clamp(place - low, 0.0, 1.0);
        next[to][low] += chance * (1 - higher);
        next[to][high] += chance * higher;
      }
    }
    now = std::move(next);
  }
  return {waits / served / rate_per_s, waiting / served};
}

// The regularised incomplete gamma function P, by its series.
double gamma_chance(double shape, double x) {
  constexpr double far = 30, last = 1e-12;  // standard deviations behind the mean; of the sum
  if (x <= 0) return 0;
  if (x > shape + far * (1 + std::sqrt(shape))) return 1;
  double term = std::exp(shape * std::log(x) - x - std::lgamma(shape + 1)), sum = 0;
  for (double at = shape + 1; term > last * sum; ++at) {
    sum += term;
    term *= x / at;
  }
  return std::min(1.0, sum);
}

// Who comes so soon behind the one before that a batch of one is still under way, with gaps of that shape: the chance, and the mean time
// that is left of the batch, of all.
struct Soon {
  double chance = 0, left_s = 0;
};
Soon within(double batch_s, double rate_per_s, double shape) {
  const double x = batch_s * rate_per_s * shape, chance = gamma_chance(shape, x);
  return {chance, std::max(0.0, batch_s * chance - gamma_chance(shape + 1, x) / rate_per_s)};
}

// The batch that makes itself again by who comes during it: of one that takes D a Poisson number, one where that is none.
struct Recurring {
  StaticBatch one;
  double batch = 1, come = 0, busy = 0, waits = 0;  // come: during it; waits: the share of who comes that finds all instances at work
  bool cut = false;                                 // some wait for a slot
  [[nodiscard]] double seen(bool random) const { return random ? (come * come + batch) / batch : batch; }  // large ones are seen by more
};
// Of several instances by Sakasegawa. Ends early beyond their capacity.
Recurring recurring_batch(const PoolFormula& pool, const LoadMoments& load, double rate_per_s, int instances, double most_per_s) {
  constexpr int rounds = 200;
  const bool random = load.arrival_variation > 0;
  const double all_at_work = std::sqrt(2.0 * (instances + 1)) - 1;
  Recurring out;
  for (int round = 0; round < rounds; ++round) {
    out.one = static_batch(pool, load, out.batch);
    out.busy = std::min(1.0, rate_per_s * out.one.seconds / out.batch);
    out.waits = std::pow(out.busy, all_at_work);
    out.come = rate_per_s * out.one.seconds * out.waits / out.busy;
    double next = random ? out.come + std::exp(-out.come) : std::max(1.0, out.come);
    out.cut = next > pool.most_sequences();
    if (out.cut && (!random || rate_per_s >= most_per_s)) break;
    next = std::min(next, pool.most_sequences());
    if (std::abs(next - out.batch) < 1e-9 * (1 + next)) break;
    out.batch = (out.batch + next) / 2;
  }
  return out;
}

// Who comes during a batch waits for half of it on average. At a constant rate below one a batch nobody does, where batches are alike.
BatchesInTurn batches_at_once(const PoolFormula& pool, const LoadMoments& load, double rate_per_s, int instances, const Recurring& batch) {
  const bool random = load.arrival_variation > 0, alone = !random && batch.come <= 1;
  const double waits = alone ? 0 : batch.waits;
  BatchesInTurn out{.met = static_batch(pool, load, batch.seen(random)),
                    .batch = batch.batch,
                    .queue_s = waits * batch.one.seconds / 2,
                    .waits = waits,
                    .longest_s = batch.one.seconds};
  const bool unlike = load.steps.size() > 1 || load.input_variation > 0;
  if (!alone || !unlike || instances != 1) return out;
  const Waits some = waits_at_constant_rate(pool, load, rate_per_s);
  out.queue_s = some.mean_s;
  out.waits = some.share;
  out.longest_s = some.share > 0 ? 2 * some.mean_s / some.share : 0;
  return out;
}

// By how unevenly requests come, against arrivals at random; an instance in turn sees so many gaps as one.
void put_gaps(BatchesInTurn& batches, const LoadMoments& load, double batch_s, double rate_per_s, int instances) {
  const Soon these = within(batch_s, rate_per_s, instances / load.arrival_variation), those = within(batch_s, rate_per_s, instances);
  if (those.left_s > 0) batches.queue_s *= these.left_s / those.left_s;
  if (those.chance > 0) batches.waits = std::min(1.0, batches.waits * these.chance / those.chance);
}

// At the load's percentile.
void put_high(PoolState& state, const PoolFormula& pool, const LoadMoments& load, const BatchesInTurn& batches, double seen) {
  const double waiting_s = batches.waits > 0 ? std::max(0.0, 1 - (1 - load.percentile) / batches.waits) * batches.longest_s : 0;
  state.ttft_high_s = waiting_s + batches.met.first_s;
  if (pool.pool().rules.role == Role::both) state.ttft_high_s += (high_prompt(load) - 1) * pool.prompt_s(0).seconds;
  const bool random = load.arrival_variation > 0;
  state.tpot_high_s = static_batch(pool, load, random ? std::max(seen, high_number(seen, load)) : seen).tpot_s;
}

}  // namespace

// Who comes while a batch is under way makes the next one; small batches of several instances as they come in turn, as do those with few
// slots.
PoolState static_batches(const PoolFormula& pool, const LoadMoments& load, double rate_per_s, int instances) {
  const bool random = load.arrival_variation > 0, both = pool.pool().rules.role == Role::both;
  const double most = pool.most_sequences(), most_per_s = most / static_batch(pool, load, most).seconds;
  const PoolState beyond{.ttft_s = INFINITY, .requests_per_s = most_per_s};
  const Recurring batch = recurring_batch(pool, load, rate_per_s, instances, most_per_s);
  if (batch.cut && (!random || rate_per_s >= most_per_s)) return beyond;
  constexpr double most_in_turn = 8;  // of a batch; larger ones are alike whoever they come in turn with
  std::optional<BatchesInTurn> batches;
  if (random && (instances > 1 || most < most_in_turn) && batch.batch < most_in_turn)
    batches = batches_in_turn(pool, load, rate_per_s, instances);
  if (!batches && batch.cut) return beyond;
  if (!batches) batches = batches_at_once(pool, load, rate_per_s, instances, batch);
  if (random && load.arrival_variation != 1) put_gaps(*batches, load, batch.one.seconds, rate_per_s, instances);
  PoolState out{.answer_s = both ? 0.0 : -1.0,
                .tpot_s = batches->met.tpot_s,
                .batch = batches->batch,
                .requests_per_s = rate_per_s,
                .queue_s = batches->queue_s,
                .prefill_s = batches->met.first_s,
                .busy = batch.busy};
  if (load.percentile > 0) put_high(out, pool, load, *batches, batch.seen(random));
  if (!both) return out;
  out.ttft_s = out.queue_s + out.prefill_s;
  for (const double steps : load.steps) out.answer_s += load.step_share * steps / static_cast<double>(load.steps.size()) * out.tpot_s;
  return out;
}

}  // namespace rehearse::sim
