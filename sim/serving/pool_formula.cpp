#include "sim/serving/pool_formula.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace rehearse::sim {
namespace {

constexpr int sharing_rounds = 20;       // of prompts that go together
constexpr int fixed_point_rounds = 200;  // of a fixed point; each contracts by the load

// Quantile of the standard normal distribution by bisection.
double normal_quantile(double share) {
  double low = -10, high = 10;
  for (int i = 0; i < 80; ++i) {
    const double middle = (low + high) / 2;
    (std::erfc(-middle / std::numbers::sqrt2) / 2 < share ? low : high) = middle;
  }
  return low;
}

}  // namespace

double high_prompt(const LoadMoments& load) { return load.percentile > 0 ? load.input_at(load.percentile) / load.input : 1; }

// Erlang's C by the recursion of his B.
double chance_to_wait(int servers, double offered) {
  double blocked = 1;
  for (int k = 1; k <= servers; ++k) blocked = offered * blocked / (k + offered * blocked);
  const double load = offered / servers;
  return blocked / (1 - load * (1 - blocked));
}

PassShape prompt_shape(const LoadMoments& load, double prompts, double tokens, double cached, double beside) {
  PassShape shape;
  shape.prompt_tokens = prompts * tokens;
  shape.prompt_pairs = prompts * (tokens * cached + tokens * (tokens + 1) / 2) * load.pair_factor;  // they grow with the square of a prompt
  shape.cached = prompts * cached;
  shape.chunks = shape.finished = prompts;
  shape.decodes = beside;
  shape.context = beside * load.context;
  return shape;
}

PoolFormula::PoolFormula(const PoolDeployment& pool, const LoadMoments& load)
    : pool_(pool), load_(load), price_(*pool.price), step_passes_(load.steps) {
  if (pool.rules.speculation.tokens == 0) return;
  passes_a_token_ = load.steps.empty() ? 1 : 0;
  for (std::size_t i = 0; i < load.steps.size(); ++i) {
    step_passes_[i] = passes(load.steps[i]);
    passes_a_token_ += (passes(load.steps[i] + 1) - 1) / load.steps[i] / static_cast<double>(load.steps.size());
  }
}

std::vector<PoolFormula::Chunk> PoolFormula::chunks(double tokens, double sequences) const {
  const double beside = mixes() ? std::floor(sequences) : 0;
  const double room = room_of_a_pass(sequences);
  const double chunk = pool_.rules.chunked_prefill ? std::ceil(room / lanes()) : tokens;
  std::vector<Chunk> out;
  double done = found(tokens);
  while (done < tokens) {
    const double q = std::min(chunk, tokens - done);
    PassShape shape = prompt_shape(load_, 1, q, done, beside);
    shape.finished = done + q >= tokens ? 1 : 0;
    out.push_back({q, price_.seconds(shape)});
    done += q;
  }
  return out;
}

PoolFormula::Prompt PoolFormula::prompt_s(double sequences) const {
  Prompt out{.seconds = 0, .more_s = 0, .passes = 0};
  for (const Chunk& chunk : chunks(load_.input, sequences)) {
    out.seconds += chunk.seconds;
    ++out.passes;
  }
  const double beside = mixes() ? std::floor(sequences) : 0;
  // A mixed pass may be priced below one of decoding alone, where that is no graph any more: prompts make nothing faster.
  out.more_s = std::max(0.0, out.seconds - (beside > 0 ? out.passes * decode_s(beside) : 0));
  return out;
}

// As many go together as come while they are computed.
PoolFormula::Prompt PoolFormula::prompt_s(double sequences, double rate_per_s) const {
  constexpr int rounds = 30;
  Prompt out = prompt_s(sequences);
  if (lanes() <= 1) return out;
  const double most = prompts_of_a_pass(INFINITY, sequences), beside = mixes() ? std::floor(sequences) : 0;
  double together = 1;
  for (int round = 0; round < rounds; ++round) {
    out.seconds = together_s(together, sequences);
    const double next = std::clamp(rate_per_s * out.seconds, 1.0, most);
    if (next == together) break;
    together = next;
  }
  out.more_s = std::max(0.0, out.seconds - (beside > 0 ? out.passes * decode_s(beside) : 0)) / together;
  return out;
}

double PoolFormula::service_s() const {
  if (lanes() <= 1) return prompt_s(0).seconds;
  const double most = prompts_of_a_pass(INFINITY, 0);
  return together_s(most, 0) / most;
}

double PoolFormula::prompts_of_a_pass(double there, double sequences) const {
  const double each = room_of_a_pass(sequences) / lanes() / tokens_of_a_prompt(),
               fit = pool_.rules.chunked_prefill ? each : std::floor(each);
  return std::clamp(lanes() > 1 ? lanes() * std::max(1.0, fit) : fit, 1.0, std::max(1.0, there));
}

// Each in the emptiest lane, and part of the last ones in the next pass; what is longer than a lane's room takes a lane of several passes.
double PoolFormula::together_s(double prompts, double sequences) const {
  const double tokens = load_.input - load_.found, room = std::ceil(room_of_a_pass(sequences) / lanes());
  if (lanes() > 1 && tokens > room) return std::min(1.0, prompts) * std::ceil(prompts / lanes()) * prompt_s(sequences).seconds;
  PassShape shape = prompt_shape(load_, prompts, tokens, load_.found, mixes() ? std::floor(sequences) : 0);
  shape.busiest_tokens = std::max(shape.prompt_tokens / lanes(), std::min(std::ceil(prompts / lanes()) * tokens, room));
  if (prompts <= 1 || lanes() <= 1) shape.busiest_tokens = shape.prompt_tokens;
  return price_.seconds(shape);
}

// A closed loop of so many clients an instance, or so many at once, of whom those wait that do not fit: while a sequence decodes, every
// other one brings one prompt.
PoolState closed_loop(const PoolFormula& pool, const LoadMoments& load, double clients) {
  PoolState out;
  out.batch = std::min(clients, pool.most_sequences());
  const double decode_s = pool.decode_s(out.batch), steps = std::max(1.0, pool.passes(load.output - 1));
  const double rest_s = std::min(1.0, out.batch - 1) * decode_s / 2;  // of a pass of the others; alone there is none
  for (int round = 0; round < (pool.lanes() > 1 ? sharing_rounds : 1); ++round) {
    const PoolFormula::Prompt prompt = pool.prompt_s(out.batch - 1, out.requests_per_s);
    out.tpot_s = load.output > 1 ? decode_s + (out.batch - 1) * prompt.more_s / steps : 0;
    out.prefill_s = prompt.seconds;
    const double round_s = out.prefill_s + steps * out.tpot_s + (load.output > 1 ? rest_s : 0);
    out.requests_per_s = out.batch / round_s;
  }
  out.queue_s = rest_s + (clients > out.batch ? (clients - out.batch) / out.requests_per_s : 0);
  out.ttft_s = out.queue_s + out.prefill_s;
  out.busy = 1;
  if (pool.passes_a_token() < 1) {
    out.pass_s = out.tpot_s;
    out.tpot_s *= steps / (load.output - 1);
  }
  return out;
}

namespace {

// Passes of N steps behind the first token, while prompts take a share of the time: `pass_s` on average; but the first ones hold the
// prompts that came while its own was computed, `left_s` of them, where a pass at a random time holds share * pass_s. A pass holds what
// came during the one before, so that the difference fades by the share with every pass: N*pass + (left - share*pass) * (1 - share^N) / (1
// - share).
double steps_s(double steps, double pass_s, double share, double left_s) {
  return steps * pass_s + (left_s - share * pass_s) * (1 - std::pow(share, steps)) / (1 - share);
}

}  // namespace

double high_number(double mean, const LoadMoments& load) {
  return std::max(0.0, mean + normal_quantile(load.percentile) * std::sqrt(mean));
}

// A wait for the rest of a pass is at any time of it alike; so many sequences as the percentile of their Poisson number says, and of the
// answers the short ones.
void put_high_together(PoolState& out, const PoolFormula& pool, const LoadMoments& load, double rate_per_s) {
  if (load.percentile <= 0) return;
  const double batch = high_number(out.batch, load);
  const PoolFormula::Prompt prompt = pool.prompt_s(batch, rate_per_s);
  const double share = rate_per_s * prompt.more_s;
  out.ttft_high_s = 2 * load.percentile * out.queue_s + out.prefill_s + (high_prompt(load) - 1) * prompt.seconds;
  if (share >= 1) {
    out.tpot_high_s = INFINITY;
    return;
  }
  const double pass_s = pool.decode_s(1 + batch) / (1 - share);
  if (load.steps.empty()) return;
  out.tpot_high_s = steps_s(pool.step_passes()[load.short_place()], pass_s, share, share * out.prefill_s) / load.short_steps();
}

// Those who wait do so for an exponential time (heavy traffic; exact for exponential services).
void put_high_prompts(PoolState& out, const LoadMoments& load, int instances) {
  if (load.percentile <= 0) return;
  const double waiting = chance_to_wait(instances, out.busy * instances), spared = 1 - load.percentile;
  const double wait_s = waiting > spared && out.queue_s > 0 ? out.queue_s / waiting * std::log(waiting / spared) : 0;
  out.ttft_high_s = wait_s + out.prefill_s * high_prompt(load);
}

// As many servers as sequences fit, each taken from the first chunk of a prompt to the last token (Allen and Cunneen); instances that take
// turns are one queue, exactly where all requests are alike.
void put_room(PoolState& out, const PoolFormula& pool, const LoadMoments& load, double rate_per_s, int turns) {
  if (load.steps.empty() || !std::isfinite(out.ttft_s)) return;
  const double places = pool.most_sequences(), answer_s = std::max(0.0, out.answer_s), taken = rate_per_s * (out.prefill_s + answer_s);
  if (taken >= places) {
    out = {.ttft_s = INFINITY, .requests_per_s = places / (out.prefill_s + answer_s)};
    return;
  }
  double mean = 0, squares = 0;
  for (const double steps : load.steps) {
    mean += steps / static_cast<double>(load.steps.size());
    squares += steps * steps / static_cast<double>(load.steps.size());
  }
  const double answers = answer_s / (out.prefill_s + answer_s), variation = (squares / (mean * mean) - 1) * answers * answers;
  const double waits = chance_to_wait(static_cast<int>(places) * turns, taken * turns), spared = 1 - load.percentile;
  const double mean_s = (load.arrival_variation + variation) / 2 * (out.prefill_s + answer_s) / (turns * (places - taken));
  out.queue_s += waits * mean_s;
  out.ttft_s += waits * mean_s;
  if (load.percentile > 0 && waits > spared) out.ttft_high_s += mean_s * std::log(waits / spared);
}

// As many servers as prompts have room, each taken from its first pass until its cache is handed over (Allen and Cunneen); who waits for
// room does not wait for passes too.
double put_held(PoolState& out, const PoolFormula& pool, const LoadMoments& load, double rate_per_s, double hand_over_s) {
  if (!std::isfinite(out.ttft_s)) return 0;
  const InstanceRules& rules = pool.pool().rules;
  const double each = std::ceil(load.input / static_cast<double>(rules.page)) + static_cast<double>(rules.state_pages);
  const double room = static_cast<double>(rules.usable_pages()) / each;
  const double places = pool.pool().pool->instances * std::max(1.0, std::floor(room)), each_s = out.prefill_s + hand_over_s;
  const double taken = rate_per_s * each_s;
  constexpr double far = 10;  // standard deviations: so many are never there
  if (taken >= places) {
    out = {.held = true, .ttft_s = INFINITY, .requests_per_s = places / each_s};
    return INFINITY;
  }
  if (places > taken + far * std::sqrt(taken) + 100) return 0;
  const double waits = chance_to_wait(static_cast<int>(places), taken), spared = 1 - load.percentile;
  const double mean_s = (load.arrival_variation + load.input_variation) / 2 * each_s / (places - taken);
  const double more_s = std::max(0.0, waits * mean_s - out.queue_s);
  out.queue_s += more_s;
  out.ttft_s += more_s;
  if (load.percentile > 0 && waits > spared) out.ttft_high_s = std::max(out.ttft_high_s, out.prefill_s + mean_s * std::log(waits / spared));
  return more_s;
}

// Between two passes of one prompt nobody would have joined in any case. What is missed goes on with decoding, and where prompts run beside
// it with those who came before.
void put_late(PoolState& out, const PoolFormula& pool, double rate_per_s) {
  if (!pool.pool().rules.ahead || !std::isfinite(out.ttft_s)) return;
  const PoolFormula::Prompt prompt = pool.prompt_s(out.batch);
  const double missing = std::max(0.0, out.busy - rate_per_s * prompt.seconds * (1 - 1 / prompt.passes));
  const double late_s = missing * (pool.mixes() ? out.first_pass_s() : pool.decode_s(std::max(1.0, out.batch)));
  out.queue_s += late_s;
  out.ttft_s += late_s;
  out.ttft_high_s += late_s;
}

// Prompts and decoding at a rate of arrivals an instance: the share of the time that prompts take lengthens every token, and short answers
// suffer more from what came with them. Means over requests, not over time.
PoolState together(const PoolFormula& pool, const LoadMoments& load, double rate_per_s, int looked_at) {
  if (pool.pool().rules.batching == Batching::fixed) return static_batches(pool, load, rate_per_s, looked_at);
  PoolState out;
  double batch = 0;
  for (int round = 0; round < fixed_point_rounds; ++round) {
    const PoolFormula::Prompt prompt = pool.prompt_s(batch, rate_per_s);
    const double share = rate_per_s * prompt.more_s;
    if (share >= 1) return {.ttft_s = INFINITY, .requests_per_s = 0};
    const double pass_s =
        pool.decode_s(1 + batch) / (1 - share);  // a request sees itself and, as Poisson arrivals do, the mean of the others
    out.busy = std::min(1.0, share + std::min(batch, 1.0) * (1 - share));
    // The rest of the pass under way, of decoding or of another's prompt; then a pass with all who came during it.
    const double under_way_s = (1 - share) * std::min(batch, 1.0) * pool.decode_s(std::max(1.0, batch)) +
                               share * prompt.seconds / prompt.passes * (1 + load.input_variation);
    out.queue_s = under_way_s / 2;
    out.prefill_s = prompt.seconds + rate_per_s * under_way_s * prompt.more_s;
    double decoding_s = 0;
    out.tpot_s = 0;
    for (std::size_t i = 0; i < load.steps.size(); ++i) {
      const double seconds = steps_s(pool.step_passes()[i], pass_s, share, share * out.prefill_s);
      decoding_s += seconds / static_cast<double>(load.steps.size());
      out.tpot_s += seconds / load.steps[i] / static_cast<double>(load.steps.size());
    }
    out.answer_s = load.step_share * decoding_s;
    if (pool.pool().rules.speculation.tokens > 0) out.pass_s = pass_s;
    const double next = rate_per_s * out.answer_s;
    if (next > pool.most_sequences()) return {.ttft_s = INFINITY, .requests_per_s = pool.most_sequences() / (load.output * pass_s)};
    if (std::abs(next - batch) < 1e-9 * (1 + next)) break;
    batch = next;
  }
  out.batch = batch;
  out.ttft_s = out.queue_s + out.prefill_s;
  out.requests_per_s = rate_per_s;
  put_high_together(out, pool, load, rate_per_s);
  put_late(out, pool, rate_per_s);
  put_room(out, pool, load, rate_per_s, 1);
  return out;
}

// Prompts alone at n instances (Allen and Cunneen; exact by Pollaczek and Khinchine for one and Poisson arrivals). Who finds all of them at
// work while lanes are free waits for the rest of a pass.
PoolState prompts_alone(const PoolFormula& pool, const LoadMoments& load, double rate_per_s, int instances) {
  PoolState out;
  const double service_s = pool.service_s(), offered = rate_per_s * service_s, busy = offered / instances;
  out.prefill_s = pool.prompt_s(0, rate_per_s / instances).seconds;
  out.requests_per_s = rate_per_s;
  out.busy = std::min(1.0, rate_per_s * out.prefill_s / instances);
  if (busy >= 1) return {.ttft_s = INFINITY, .requests_per_s = instances / service_s};
  out.queue_s =
      (load.arrival_variation + load.input_variation) / 2 * chance_to_wait(instances, offered) * service_s / (instances * (1 - busy));
  if (pool.lanes() > 1)
    out.queue_s += std::pow(out.busy, std::sqrt(2.0 * (instances + 1)) - 1) * out.prefill_s / 2;  // all are at work (Sakasegawa)
  out.ttft_s = out.queue_s + out.prefill_s;
  put_high_prompts(out, load, instances);
  return out;
}

// Decoding alone at a rate an instance, by Little.
PoolState decoding_alone(const PoolFormula& pool, const LoadMoments& load, double rate_per_s, int turns) {
  if (pool.pool().rules.batching == Batching::fixed) return static_batches(pool, load, rate_per_s);
  PoolState out;
  const double passes = pool.passes(load.output), most = pool.most_sequences();
  double batch = 0, decodes = 0, met = 0;
  for (int round = 0; round < fixed_point_rounds; ++round) {
    const Company others = pool.company(batch, turns);
    out.pass_s = pool.decode_s(others);
    decodes = 1 - others.nobody();
    met = others.mean([](double number) { return std::min(1.0, number); });
    const double next = rate_per_s * passes * out.pass_s;
    if (next > most) return {.ttft_s = INFINITY, .requests_per_s = most / (passes * pool.decode_s(pool.company(most, turns)))};
    if (std::abs(next - batch) < 1e-9 * (1 + next)) break;
    batch = next;
  }
  out.batch = batch;
  out.busy = decodes;
  out.tpot_s = out.pass_s * pool.passes_a_token();
  out.queue_s = met * out.pass_s / 2 + (pool.pool().rules.ahead ? decodes * out.pass_s : 0);
  out.requests_per_s = rate_per_s;
  if (load.percentile > 0) out.tpot_high_s = pool.passes_a_token() * pool.decode_s(1 + high_number(batch, load));
  return out;
}

}  // namespace rehearse::sim
