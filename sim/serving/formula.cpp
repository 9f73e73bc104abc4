#include "sim/serving/formula.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace rehearse::sim {
namespace {

using workloads::Arrivals;

constexpr int most_looked_at = 10'000;  // requests whose lengths are averaged
constexpr int rounds = 200;             // of a fixed point; each contracts by the load

// Means over the requests, and what their spread means for a queue.
struct Lengths {
  double input = 0, output = 0;
  double input_variation = 0;  // squared: variance over squared mean
  double context = 0;          // of a decoding sequence: a request is seen in proportion to its answer
  double rate_per_s = 0;       // of arrivals; 0: none
  double arrival_variation = 1;
};

Lengths lengths_of(const ServingJob& job) {
  workloads::LoadSpec load = job.load;
  load.requests = std::min(load.requests, most_looked_at);
  const std::vector<workloads::Request> requests = draw_requests(load, job.seed);
  const auto count = static_cast<double>(requests.size());
  Lengths out;
  double squares = 0, seen = 0;
  for (const workloads::Request& request : requests) {
    const double i = request.tokens.input, o = request.tokens.output;
    out.input += i;
    out.output += o;
    squares += i * i;
    seen += o * (i + o / 2);
  }
  out.context = seen / out.output;
  out.input /= count;  // sums of whole numbers are exact: equal lengths have exactly their mean
  out.output /= count;
  out.input_variation = squares / count / (out.input * out.input) - 1;
  out.rate_per_s = load.arrivals.rate_per_s;
  if (load.arrivals.kind == Arrivals::trace && requests.back().arrival_s > 0) out.rate_per_s = (count - 1) / requests.back().arrival_s;
  if (load.arrivals.kind == Arrivals::gamma) out.arrival_variation = load.arrivals.variation * load.arrivals.variation;
  if (load.arrivals.kind == Arrivals::constant) out.arrival_variation = 0;
  return out;
}

// Erlang's C by the recursion of his B.
double chance_to_wait(int servers, double offered) {
  double blocked = 1;
  for (int k = 1; k <= servers; ++k) blocked = offered * blocked / (k + offered * blocked);
  const double load = offered / servers;
  return blocked / (1 - load * (1 - blocked));
}

// One instance of a pool, as the formula sees it.
class PoolFormula {
 public:
  PoolFormula(const PoolDeployment& pool, const Lengths& lengths) : pool_(pool), lengths_(lengths), price_(*pool.price) {}

  // A decode pass of so many sequences of mean context.
  [[nodiscard]] double decode_s(double sequences) const {
    if (sequences <= 0) return 0;
    const double low = std::max(1.0, std::floor(sequences)), high = std::ceil(std::max(sequences, 1.0));
    const auto at = [&](double n) { return price_.decode(static_cast<int>(n)).seconds(n * lengths_.context); };
    return high > low ? at(low) + (at(high) - at(low)) * (sequences - low) : at(low);
  }
  // A whole prompt, in passes of the limit, beside so many decoding sequences; and what that costs more than the passes without it.
  struct Prompt {
    double seconds = 0, more_s = 0, passes = 1;
  };
  [[nodiscard]] Prompt prompt_s(double sequences) const;

  [[nodiscard]] bool mixes() const { return pool_.rules.batching == Batching::continuous; }
  // Sequences that an instance holds at once, by slots and by its cache.
  [[nodiscard]] double most_sequences() const {
    const double tokens = static_cast<double>(pool_.rules.pages * pool_.rules.page);
    const double each =
        lengths_.input +
        (pool_.rules.overflow == Overflow::reserve || pool_.rules.batching == Batching::fixed ? lengths_.output : lengths_.output / 2);
    return std::max(1.0, std::min(static_cast<double>(pool_.rules.sequences), std::floor(tokens / each)));
  }
  [[nodiscard]] const PoolDeployment& pool() const { return pool_; }

 private:
  const PoolDeployment& pool_;
  const Lengths& lengths_;
  const OperatorPassPrice& price_;
};

PoolFormula::Prompt PoolFormula::prompt_s(double sequences) const {
  const double beside = mixes() ? std::floor(sequences) : 0;
  const double room = std::max(1.0, static_cast<double>(pool_.rules.tokens) - beside);
  const double chunk = pool_.rules.chunked_prefill ? room : lengths_.input;
  Prompt out{.seconds = 0, .more_s = 0, .passes = 0};
  for (double done = 0; done < lengths_.input; done += chunk) {
    const double q = std::min(chunk, lengths_.input - done);
    PassShape shape;
    shape.prompt_tokens = q;
    shape.prompt_pairs = q * done + q * (q + 1) / 2;
    shape.cached = done;
    shape.chunks = 1;
    shape.finished = done + q >= lengths_.input ? 1 : 0;
    shape.decodes = beside;
    shape.context = beside * lengths_.context;
    out.seconds += price_.seconds(shape);
    ++out.passes;
  }
  out.more_s = out.seconds - (beside > 0 ? out.passes * decode_s(beside) : 0);
  return out;
}

// What a pool comes to.
struct State {
  double ttft_s = 0, tpot_s = 0, batch = 0, requests_per_s = 0, queue_s = 0, prefill_s = 0, busy = 0;
};

// A closed loop of so many clients an instance, or so many at once, of whom those wait that do not fit: while a sequence decodes, every
// other one brings one prompt.
State closed(const PoolFormula& pool, const Lengths& lengths, double clients) {
  State out;
  out.batch = std::min(clients, pool.most_sequences());
  const PoolFormula::Prompt prompt = pool.prompt_s(out.batch - 1);
  const double decode_s = pool.decode_s(out.batch), steps = std::max(1.0, lengths.output - 1);
  out.tpot_s = lengths.output > 1 ? decode_s + (out.batch - 1) * prompt.more_s / steps : 0;
  out.prefill_s = prompt.seconds;
  const double round_s = out.prefill_s + steps * out.tpot_s + (lengths.output > 1 ? decode_s / 2 : 0);
  out.requests_per_s = out.batch / round_s;
  out.queue_s = decode_s / 2 + (clients > out.batch ? (clients - out.batch) / out.requests_per_s : 0);
  out.ttft_s = out.queue_s + out.prefill_s;
  out.busy = 1;
  return out;
}

// Batches one after another: all prompts, then all tokens.
State in_batches(const PoolFormula& pool, const Lengths& lengths, double requests) {
  State out;
  out.batch = std::min(requests, pool.most_sequences());
  const double prompts_s = out.batch * pool.prompt_s(0).seconds;
  const double line_s =
      pool.pool().price->decode(static_cast<int>(out.batch)).seconds(out.batch * (lengths.input + 1), out.batch, lengths.output - 1);
  const double batches = std::ceil(requests / out.batch);
  out.prefill_s = prompts_s;
  out.tpot_s = lengths.output > 1 ? line_s / (lengths.output - 1) : 0;
  out.queue_s = (batches - 1) / 2 * (prompts_s + line_s);
  out.ttft_s = out.queue_s + prompts_s;
  out.requests_per_s = out.batch / (prompts_s + line_s);
  out.busy = 1;
  return out;
}

// Prompts and decoding at a rate of arrivals an instance: the share of the time that prompts take lengthens every token.
State together(const PoolFormula& pool, const Lengths& lengths, double rate_per_s) {
  State out;
  double batch = 0;
  for (int round = 0; round < rounds; ++round) {
    const double more = rate_per_s * pool.prompt_s(batch).more_s;
    if (more >= 1) return {.ttft_s = INFINITY, .requests_per_s = 0};
    out.tpot_s = pool.decode_s(1 + batch) / (1 - more);  // a request sees itself and, as Poisson arrivals do, the mean of the others
    out.busy = std::min(1.0, more + std::min(batch, 1.0) * (1 - more));
    const double next = rate_per_s * (lengths.output - 1) * out.tpot_s;
    if (next > pool.most_sequences()) return {.ttft_s = INFINITY, .requests_per_s = pool.most_sequences() / (lengths.output * out.tpot_s)};
    if (std::abs(next - batch) < 1e-9 * (1 + next)) break;
    batch = next;
  }
  const PoolFormula::Prompt prompt = pool.prompt_s(batch);
  const double load = rate_per_s * prompt.more_s, pass_s = std::min(batch, 1.0) * pool.decode_s(std::max(1.0, batch));
  out.batch = batch;
  out.prefill_s = prompt.seconds;
  // The rest of the pass under way, of decoding or of another's prompt; then a pass with all who came during it.
  const double under_way_s = (1 - load) * pass_s + load * prompt.seconds / prompt.passes * (1 + lengths.input_variation);
  out.queue_s = under_way_s / 2;
  out.prefill_s += rate_per_s * under_way_s * prompt.more_s;
  out.ttft_s = out.queue_s + out.prefill_s;
  out.requests_per_s = rate_per_s;
  return out;
}

// Prompts alone at n instances (Allen and Cunneen; exact by Pollaczek and Khinchine for one and Poisson arrivals).
State prompts(const PoolFormula& pool, const Lengths& lengths, double rate_per_s, int instances) {
  State out;
  out.prefill_s = pool.prompt_s(0).seconds;
  const double offered = rate_per_s * out.prefill_s, load = offered / instances;
  out.requests_per_s = rate_per_s;
  out.busy = load;
  if (load >= 1) return {.ttft_s = INFINITY, .requests_per_s = instances / out.prefill_s};
  out.queue_s = (lengths.arrival_variation + lengths.input_variation) / 2 * chance_to_wait(instances, offered) * out.prefill_s /
                (instances * (1 - load));
  out.ttft_s = out.queue_s + out.prefill_s;
  return out;
}

// Decoding alone at a rate an instance, by Little.
State decoding(const PoolFormula& pool, const Lengths& lengths, double rate_per_s) {
  State out;
  double batch = 0;
  for (int round = 0; round < rounds; ++round) {
    out.tpot_s = pool.decode_s(1 + batch);  // itself, and the mean of the others
    const double next = rate_per_s * lengths.output * out.tpot_s;
    if (next > pool.most_sequences()) return {.ttft_s = INFINITY, .requests_per_s = pool.most_sequences() / (lengths.output * out.tpot_s)};
    if (std::abs(next - batch) < 1e-9 * (1 + next)) break;
    batch = next;
  }
  out.batch = batch;
  out.busy = std::min(1.0, batch);
  out.queue_s = std::min(1.0, batch) * out.tpot_s / 2;
  out.requests_per_s = rate_per_s;
  return out;
}

void put_rates(ServingResult& result, const ServingJob& job, const Lengths& lengths, double requests_per_s) {
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

PoolResult pool_of(const PoolDeployment& pool, const State& state, const Lengths& lengths) {
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

// One pool: of both sides, or of one alone.
State one_pool(const ServingJob& job, const PoolFormula& pool, const Lengths& lengths) {
  const int instances = job.pools.front().instances;
  const Role role = job.pools.front().role;
  const double at_once =
      static_cast<double>(job.load.arrivals.kind == Arrivals::closed ? job.load.arrivals.clients : job.load.requests) / instances;
  State state;
  if (role == Role::prefill && lengths.rate_per_s > 0) return prompts(pool, lengths, lengths.rate_per_s, instances);
  if (role == Role::decode && lengths.rate_per_s > 0) return decoding(pool, lengths, lengths.rate_per_s / instances);
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
  return pool.pool().rules.batching == Batching::fixed ? in_batches(pool, lengths, at_once) : closed(pool, lengths, at_once);
}

std::string overload(const Pool& pool, const Lengths& lengths, const State& state, double per_pool) {
  return fmt::format("pool {} is beyond its capacity: {:.4g} requests/s come, and it carries {:.4g}; {} of {} instances would", pool.name,
                     lengths.rate_per_s, state.requests_per_s * per_pool,
                     state.requests_per_s > 0
                         ? fmt::format("{:.0f}", std::ceil(lengths.rate_per_s / state.requests_per_s * (per_pool > 1 ? 1 : pool.instances)))
                         : "more",
                     pool.name);
}

}  // namespace

ServingPrediction predict_serving(const ServingJob& job, const Deployment& deployment, double transfer_s, double transfer_bytes) {
  const Lengths lengths = lengths_of(job);
  ServingPrediction out;
  ServingResult& result = out.result;
  result.method = "analytic";
  result.requests = job.load.requests;
  result.counted = result.finished = job.load.requests - job.load.warmup;
  std::vector<State> states;
  const PoolFormula first(deployment.pools.front(), lengths);
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
        const State prompt = prompts(first, lengths, rate, job.pools.front().instances);
        const State decode = decoding(second, lengths, rate / job.pools.back().instances);
        const double round_s = prompt.ttft_s + transfer_s + decode.ttft_s + decode.queue_s + lengths.output * decode.tpot_s;
        (rate * round_s < clients ? low : high) = rate;
      }
      rate_per_s = low;
    }
    states = {prompts(first, lengths, rate_per_s, job.pools.front().instances),
              decoding(second, lengths, rate_per_s / job.pools.back().instances)};
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
    result.kv_transfer_bytes = transfer_bytes;
  }
  // Servers and tokenisers, in series.
  double fronts_s = job.pools.front().habits.request_s;
  if (apart && !job.transfer.prefill_answers_first) {
    fronts_s += job.pools.back().habits.request_s;
    put_stage(result, Stage::waiting, job.pools.back().habits.request_s);
  }
  put_stage(result, Stage::queued, states.front().queue_s + job.pools.front().habits.request_s);
  ttft_s += fronts_s;
  const double steps = std::max(0.0, lengths.output - 1);
  put_stage(result, Stage::decoding, (apart && !job.transfer.prefill_answers_first ? lengths.output : steps) * tpot_s);
  result.ttft.mean_s = ttft_s;
  result.tpot.mean_s = result.itl.mean_s = tpot_s;
  result.e2e.mean_s = ttft_s + steps * tpot_s;
  const double scale = apart || lengths.rate_per_s > 0 ? 1 : job.pools.front().instances;
  const double rate =
      apart || lengths.rate_per_s > 0 ? std::max(lengths.rate_per_s, states.front().requests_per_s) : states.front().requests_per_s * scale;
  put_rates(result, job, lengths, rate);
  return out;
}

}  // namespace rehearse::sim
