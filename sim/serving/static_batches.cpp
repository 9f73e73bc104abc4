#include <algorithm>
#include <cmath>
#include <vector>

#include "sim/serving/pool_formula.hpp"

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
  for (double left = requests; left > 1e-9; left -= fit) {
    const double prompts = std::min(left, fit);
    out.prompts_s += fit > 1 ? pool.together_s(prompts, 0) : prompts * pool.prompt_s(0).seconds;
    out.first_s += prompts / requests * out.prompts_s;
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

namespace {

// A static batch of so many sequences, of which ever fewer go on: how long it takes, and per token of an answer on average. Of instances of
// both it begins with their prompts.
struct StaticBatch {
  double seconds = 0, first_s = 0, tpot_s = 0;
};
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

}  // namespace

// Who comes while a batch is under way makes the next one: of a batch that takes D a Poisson number, one where that is none. Who comes
// during it waits for D/2 on average; of several instances only where all are at work (Sakasegawa). At a constant rate below one a batch
// nobody does.
PoolState static_batches(const PoolFormula& pool, const LoadMoments& load, double rate_per_s, int instances) {
  PoolState out{.answer_s = pool.pool().rules.role == Role::both ? 0.0 : -1.0};
  constexpr int rounds = 200;
  const bool random = load.arrival_variation > 0;
  const double all_at_work = std::sqrt(2.0 * (instances + 1)) - 1;
  double batch = 1, come = 0, waits = 0;
  StaticBatch one;
  for (int round = 0; round < rounds; ++round) {
    one = static_batch(pool, load, batch);
    out.busy = std::min(1.0, rate_per_s * one.seconds / batch);
    waits = std::pow(out.busy, all_at_work);
    come = rate_per_s * one.seconds * waits / out.busy;
    const double next = random ? come + std::exp(-come) : std::max(1.0, come);
    if (next > pool.most_sequences()) {
      const double most = pool.most_sequences();
      return {.ttft_s = INFINITY, .requests_per_s = most / static_batch(pool, load, most).seconds};
    }
    if (std::abs(next - batch) < 1e-9 * (1 + next)) break;
    batch = (batch + next) / 2;
  }
  const double seen = random ? (come * come + batch) / batch : batch;  // large batches are seen by more
  if (!random && come <= 1) waits = 0;
  out.queue_s = waits * one.seconds / 2;
  const StaticBatch met = static_batch(pool, load, seen);
  out.prefill_s = met.first_s;
  out.tpot_s = met.tpot_s;
  out.batch = batch;
  out.requests_per_s = rate_per_s;
  if (load.percentile > 0) {
    const double waiting_s = waits > 0 ? std::max(0.0, 1 - (1 - load.percentile) / waits) * one.seconds : 0;
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
