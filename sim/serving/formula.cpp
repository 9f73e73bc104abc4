#include "sim/serving/formula.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/serving/exposed_hand_over.hpp"

namespace rehearse::sim {
namespace {

using workloads::Arrivals;

constexpr int rounds = 200;  // of a bisection

void put_rates(ServingResult& result, const ServingJob& job, const LoadMoments& lengths, double requests_per_s) {
  result.requests_per_s = requests_per_s;
  result.input_tokens_per_s = requests_per_s * lengths.input;
  result.output_tokens_per_s = requests_per_s * lengths.output;
  result.output_tokens_per_s_per_gpu = result.output_tokens_per_s / job.gpus();
  int prompt_gpus = 0, decode_gpus = 0;
  for (const Pool& pool : job.pools) {
    prompt_gpus += pool.role != Role::decode ? pool.gpus() : 0;
    decode_gpus += pool.role != Role::prefill ? pool.gpus() : 0;
    result.cost_per_s += pool.price_per_s * pool.gpus();
  }
  if (prompt_gpus > 0) result.input_tokens_per_s_per_prompt_gpu = result.input_tokens_per_s / prompt_gpus;
  if (decode_gpus > 0) result.output_tokens_per_s_per_decode_gpu = result.output_tokens_per_s / decode_gpus;
  result.makespan_s = job.load.requests / requests_per_s;
}

PoolResult pool_of(const PoolDeployment& pool, const PoolState& state, const LoadMoments& lengths) {
  PoolResult out;
  out.name = pool.pool->name;
  out.instances = pool.pool->instances;
  out.gpus = pool.pool->gpus();
  out.busy = state.busy;
  out.batch = state.batch;
  out.pass_s = state.tpot_s > 0 ? state.tpot_s : state.prefill_s;
  out.cache_tokens = static_cast<double>(pool.rules.pages * pool.rules.page);
  out.pages_share = state.batch * lengths.context / out.cache_tokens;
  out.most_pages_share = out.pages_share;
  return out;
}

void put_stage(ServingResult& result, Stage stage, double seconds) { result.stages[std::string(name_of(stage))] = seconds; }

// Of a mean first token of a closed loop: all clients begin at once, and those of them that count wait for half of the others' prompts.
double begins_together_s(const ServingJob& job, const PoolFormula& pool, const PoolState& state) {
  const double counted = job.load.requests - job.load.warmup, first = std::max(0, job.load.arrivals.clients - job.load.warmup);
  return std::min(1.0, first / counted) * (state.batch - 1) / 2 * pool.prompt_s(0).seconds;
}

// One pool: of both sides, or of one alone.
PoolState one_pool(const ServingJob& job, const PoolFormula& pool, const LoadMoments& lengths) {
  const int instances = job.pools.front().instances;
  const Role role = job.pools.front().role;
  const double at_once =
      static_cast<double>(job.load.arrivals.kind == Arrivals::closed ? job.load.arrivals.clients : job.load.requests) / instances;
  PoolState state;
  if (role == Role::prefill && lengths.rate_per_s > 0) return prompts_alone(pool, lengths, lengths.rate_per_s, instances);
  if (role == Role::decode && lengths.rate_per_s > 0) {
    state = decoding_alone(pool, lengths, lengths.rate_per_s / instances);
    state.ttft_s += state.queue_s + state.tpot_s;
    return state;
  }
  if (lengths.rate_per_s > 0) return together(pool, lengths, lengths.rate_per_s / instances);
  if (role == Role::prefill) {
    // Full passes, one after another.
    const double fit = std::max(1.0, std::floor(static_cast<double>(pool.pool().rules.tokens) / lengths.input));
    PassShape shape;
    shape.chunks = shape.finished = fit;
    shape.prompt_tokens = fit * lengths.input;
    shape.prompt_pairs = fit * lengths.input * (lengths.input + 1) / 2;
    state.prefill_s = pool.pool().price->seconds(shape);
    state.requests_per_s = fit / state.prefill_s;
    state.queue_s = at_once / 2 / state.requests_per_s;
    state.ttft_s = state.queue_s + state.prefill_s;
    state.busy = 1;
    return state;
  }
  if (role == Role::decode) {
    state.batch = std::min(at_once, pool.most_sequences());
    state.tpot_s = pool.decode_s(state.batch);
    state.requests_per_s = state.batch / (lengths.output * state.tpot_s);
    state.ttft_s = state.tpot_s;
    state.busy = 1;
    return state;
  }
  if (pool.pool().rules.batching == Batching::fixed) return in_batches(pool, lengths, at_once);
  state = closed_loop(pool, lengths, at_once);
  if (job.load.arrivals.kind == Arrivals::closed) state.prefill_s += begins_together_s(job, pool, state);
  state.ttft_s = state.queue_s + state.prefill_s;
  return state;
}

std::string overload(const Pool& pool, const LoadMoments& lengths, const PoolState& state, double per_pool) {
  if (state.requests_per_s <= 0)
    return fmt::format("pool {} is far beyond its capacity: {:.4g} requests/s come, and the formula finds no batch that keeps up",
                       pool.name, lengths.rate_per_s);
  return fmt::format("pool {} is beyond its capacity: {:.4g} requests/s come, and it carries {:.4g}; {} of {} instances would", pool.name,
                     lengths.rate_per_s, state.requests_per_s * per_pool,
                     fmt::format("{:.0f}", std::ceil(lengths.rate_per_s / state.requests_per_s * (per_pool > 1 ? 1 : pool.instances))),
                     pool.name);
}

}  // namespace

ServingPrediction predict_serving(const ServingJob& job, const Deployment& deployment, double tokens) {
  const LoadMoments lengths = moments_of(job.load, job.seed);
  ServingPrediction out;
  ServingResult& result = out.result;
  result.method = "analytic";
  result.requests = job.load.requests;
  result.counted = result.finished = job.load.requests - job.load.warmup;
  std::vector<PoolState> states;
  const PoolFormula first(deployment.pools.front(), lengths);
  const ExposedHandOver hand_over =
      deployment.transfers ? exposed_hand_over(first, *deployment.transfers, tokens, job.pools.back().habits.request_s) : ExposedHandOver{};
  const double transfer_s = hand_over.transfer_s;
  if (job.pools.size() == 1) {
    states.push_back(one_pool(job, first, lengths));
  } else {
    const PoolFormula second(deployment.pools.back(), lengths);
    double rate_per_s = lengths.rate_per_s;
    if (rate_per_s <= 0) {
      // A closed loop: clients divided by a round, to which the rate leads back.
      const double clients = job.load.arrivals.kind == Arrivals::closed ? job.load.arrivals.clients : job.load.requests;
      double low = 0, high = std::min(job.pools.front().instances / first.prompt_s(0).seconds, clients / first.prompt_s(0).seconds);
      for (int round = 0; round < rounds; ++round) {
        const double rate = (low + high) / 2;
        const PoolState prompt = prompts_alone(first, lengths, rate, job.pools.front().instances);
        const PoolState decode = decoding_alone(second, lengths, rate / job.pools.back().instances);
        const double round_s = prompt.ttft_s + transfer_s + decode.ttft_s + decode.queue_s + lengths.output * decode.tpot_s;
        (rate * round_s < clients ? low : high) = rate;
      }
      rate_per_s = low;
    }
    states = {prompts_alone(first, lengths, rate_per_s, job.pools.front().instances),
              decoding_alone(second, lengths, rate_per_s / job.pools.back().instances)};
  }
  double ttft_s = 0, tpot_s = 0;
  for (std::size_t i = 0; i < states.size(); ++i) {
    const bool whole = states.size() > 1 && i == 0;
    const double per_pool = (job.pools[i].role == Role::prefill && lengths.rate_per_s > 0) || whole ? 1 : job.pools[i].instances;
    if (!std::isfinite(states[i].ttft_s)) {
      out.overloaded = overload(job.pools[i], lengths, states[i], per_pool);
      return out;
    }
    result.pools.push_back(pool_of(deployment.pools[i], states[i], lengths));
    ttft_s += states[i].ttft_s;
    tpot_s = states[i].tpot_s;
  }
  const bool apart = states.size() > 1;
  put_stage(result, Stage::prefilling, states.front().prefill_s);
  if (apart) {
    put_stage(result, Stage::transferring, transfer_s);
    put_stage(result, Stage::decode_queued, states.back().queue_s);
    ttft_s = states.front().ttft_s;
    if (!job.transfer.prefill_answers_first) ttft_s += transfer_s + states.back().queue_s + tpot_s;
    result.kv_transfer_s = transfer_s;
    result.kv_transfer_bytes = deployment.transfers->wire_bytes(tokens);
  }
  // Servers and tokenisers, in series.
  double fronts_s = job.pools.front().habits.request_s;
  if (apart && !job.transfer.prefill_answers_first) {
    fronts_s += hand_over.waiting_s;
    put_stage(result, Stage::waiting, hand_over.waiting_s);
  }
  put_stage(result, Stage::queued, states.front().queue_s + job.pools.front().habits.request_s);
  ttft_s += fronts_s;
  const double steps = std::max(0.0, lengths.output - 1);
  const double answer_s = states.back().answer_s >= 0 ? states.back().answer_s : steps * tpot_s;
  put_stage(result, Stage::decoding, answer_s + (apart && !job.transfer.prefill_answers_first ? tpot_s : 0));
  result.ttft.mean_s = ttft_s;
  result.tpot.mean_s = result.itl.mean_s = tpot_s;
  result.e2e.mean_s = ttft_s + answer_s;
  const double scale = apart || lengths.rate_per_s > 0 ? 1 : job.pools.front().instances;
  const double rate =
      apart || lengths.rate_per_s > 0 ? std::max(lengths.rate_per_s, states.front().requests_per_s) : states.front().requests_per_s * scale;
  put_rates(result, job, lengths, rate);
  return out;
}

}  // namespace rehearse::sim
