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

}  // namespace

// Who comes while a batch is under way makes the next one: of a batch that takes D a Poisson number, one where that is none. Who comes
// during it waits for D/2 on average; of several instances only where all are at work (Sakasegawa), and small batches as they come in turn,
// as do those with few slots. At a constant rate below one a batch nobody does, where batches are alike.
PoolState static_batches(const PoolFormula& pool, const LoadMoments& load, double rate_per_s, int instances) {
  PoolState out{.answer_s = pool.pool().rules.role == Role::both ? 0.0 : -1.0};
  constexpr int rounds = 200;
  const bool random = load.arrival_variation > 0;
  const double all_at_work = std::sqrt(2.0 * (instances + 1)) - 1;
  const double most = pool.most_sequences(), most_per_s = most / static_batch(pool, load, most).seconds;
  double batch = 1, come = 0, waits = 0;
  bool cut = false;  // some wait for a slot
  StaticBatch one;
  for (int round = 0; round < rounds; ++round) {
    one = static_batch(pool, load, batch);
    out.busy = std::min(1.0, rate_per_s * one.seconds / batch);
    waits = std::pow(out.busy, all_at_work);
    come = rate_per_s * one.seconds * waits / out.busy;
    double next = random ? come + std::exp(-come) : std::max(1.0, come);
    cut = next > most;
    if (cut && (!random || rate_per_s >= most_per_s)) return {.ttft_s = INFINITY, .requests_per_s = most_per_s};
    next = std::min(next, most);
    if (std::abs(next - batch) < 1e-9 * (1 + next)) break;
    batch = (batch + next) / 2;
  }
  const double seen = random ? (come * come + batch) / batch : batch;  // large batches are seen by more
  if (!random && come <= 1) waits = 0;
  out.queue_s = waits * one.seconds / 2;
  const bool unlike = load.steps.size() > 1 || load.input_variation > 0;
  StaticBatch met = static_batch(pool, load, seen);
  double longest_s = one.seconds;
  if (!random && come <= 1 && unlike && instances == 1) {
    const Waits some = waits_at_constant_rate(pool, load, rate_per_s);
    out.queue_s = some.mean_s;
    waits = some.share;
    longest_s = waits > 0 ? 2 * some.mean_s / waits : 0;
  }
  out.batch = batch;
  constexpr double most_in_turn = 8;  // of a batch; larger ones are alike whoever they come in turn with
  if (random && (instances > 1 || most < most_in_turn) && batch < most_in_turn) {
    if (const auto in_turn = batches_in_turn(pool, load, rate_per_s, instances)) {
      met = in_turn->met;
      waits = in_turn->waits;
      longest_s = in_turn->longest_s;
      out.queue_s = in_turn->queue_s;
      out.batch = in_turn->batch;
      cut = false;
    }
  }
  if (cut) return {.ttft_s = INFINITY, .requests_per_s = most_per_s};
  if (random && load.arrival_variation != 1) {  // against arrivals at random; an instance in turn sees so many gaps as one
    const Soon these = within(one.seconds, rate_per_s, instances / load.arrival_variation),
               those = within(one.seconds, rate_per_s, instances);
    if (those.left_s > 0) out.queue_s *= these.left_s / those.left_s;
    if (those.chance > 0) waits = std::min(1.0, waits * these.chance / those.chance);
  }
  out.prefill_s = met.first_s;
  out.tpot_s = met.tpot_s;
  out.requests_per_s = rate_per_s;
  if (load.percentile > 0) {
    const double waiting_s = waits > 0 ? std::max(0.0, 1 - (1 - load.percentile) / waits) * longest_s : 0;
    out.ttft_high_s = waiting_s + met.first_s;
    if (pool.pool().rules.role == Role::both) out.ttft_high_s += (high_prompt(load) - 1) * pool.prompt_s(0).seconds;
    out.tpot_high_s = static_batch(pool, load, random ? std::max(seen, high_number(seen, load)) : seen).tpot_s;
  }
  if (pool.pool().rules.role != Role::both) return out;
  out.ttft_s = out.queue_s + out.prefill_s;
  for (const double steps : load.steps) out.answer_s += load.step_share * steps / static_cast<double>(load.steps.size()) * out.tpot_s;
  return out;
}

}  // namespace rehearse::sim
