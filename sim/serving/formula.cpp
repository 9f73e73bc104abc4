#include "sim/serving/formula.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "sim/serving/equal_clients.hpp"
#include "sim/serving/found_prefixes.hpp"
#include "sim/serving/hand_over_formula.hpp"
#include "sim/serving/highest.hpp"
#include "sim/serving/promised_times.hpp"
#include "sim/serving/side_formula.hpp"

namespace rehearse::sim {
namespace {

using workloads::Arrivals;

constexpr int rounds = 200;      // of a bisection
constexpr int edge_rounds = 12;  // of one that gives a number to read
constexpr double as_good_as = 1.01;

void put_rates(ServingResult& result, const ServingJob& job, const LoadMoments& lengths, double requests_per_s) {
  result.requests_per_s = requests_per_s;
  result.input_tokens_per_s = requests_per_s * lengths.input;
  // With prompts isolated answers end with their first token.
  result.output_tokens_per_s = requests_per_s * (job.pools.back().role == Role::prefill ? 1 : lengths.output);
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

// found: share of the prompts' tokens.
PoolResult pool_of(const PoolFormula& formula, const PoolState& state, double found) {
  const PoolDeployment& pool = formula.pool();
  const LoadMoments& lengths = formula.load();
  PoolResult out;
  out.prefix_share = pool.pool->prefix_cache ? found : 0;
  out.name = pool.pool->name;
  out.instances = pool.pool->instances;
  out.gpus = pool.pool->gpus();
  out.busy = state.busy;
  out.batch = state.batch;
  out.pass_s = state.first_pass_s() > 0 ? state.first_pass_s() : state.prefill_s;
  out.cache_tokens = static_cast<double>(pool.rules.pages * pool.rules.page);
  out.pages_share = state.batch * (lengths.context + static_cast<double>(pool.rules.state_tokens())) / out.cache_tokens;
  out.most_pages_share = out.pages_share;
  return out;
}

void put_stage(ServingResult& result, Stage stage, double seconds) { result.stages[std::string(name_of(stage))] = seconds; }

bool is_closed(const ServingJob& job) { return job.load.arrivals.kind == Arrivals::closed; }

// All requests are, and take as many passes; clients come again where they were.
bool alike(const ServingJob& job, const LoadMoments& lengths, const PoolFormula& pool) {
  if (is_closed(job) && lengths.taken_out) return false;
  return lengths.input_variation <= 0 && lengths.steps.size() <= 1 && pool.pool().rules.speculation.tokens == 0;
}

// Share of the requests that begin together: the first of a closed loop, or those of a batch that fit.
double begin_together(const ServingJob& job, double batch, double at_once) {
  if (!is_closed(job)) return batch / at_once;
  const double counted = job.load.requests - job.load.warmup, first = std::max(0, job.load.arrivals.clients - job.load.warmup);
  return std::min(1.0, first / counted);
}

// Prompts that begin together are computed before most of them decode: a mean one ends behind half of those of other passes and all of its
// own, instead of while it decodes. Equal requests of one pass end together, and share a pass again.
void begin(const ServingJob& job, const LoadMoments& lengths, const PoolFormula& pool, double at_once, PoolState& state) {
  const double fit = pool.prompts_of_a_pass(state.batch, 0), share = begin_together(job, state.batch, at_once);
  const double queued = share * std::max(0.0, state.batch - fit) / 2, beside = (alike(job, lengths, pool) ? 1 : share) * (fit - 1);
  const double alone_s = pool.prompt_s(0).seconds, each_s = fit > 1 ? pool.together_s(fit, 0) / fit : alone_s;
  state.queue_s += queued * each_s;
  state.prefill_s += beside > 0 ? beside / (fit - 1) * (fit * each_s - alone_s) : 0;
  if (lengths.output > 1)
    state.tpot_s -= (queued + beside) * pool.prompt_s(state.batch - 1).more_s * pool.passes_a_token() / pool.passes(lengths.output - 1);
}

// One side alone, or instances of both, with so many requests on each at once.
PoolState clients_of(const ServingJob& job, const LoadMoments& lengths, const PoolFormula& pool, double at_once) {
  PoolState state;
  const Role role = pool.pool().rules.role;
  if (role == Role::prefill) {
    // Full passes, one after another.
    const double fit = std::floor(pool.prompts_of_a_pass(at_once, 0));
    state.prefill_s = pool.together_s(fit, 0);
    state.requests_per_s = fit / state.prefill_s;
    state.queue_s = std::max(0.0, at_once - fit) / state.requests_per_s * (is_closed(job) ? 1 : 0.5);
    state.ttft_s = state.queue_s + state.prefill_s;
    state.busy = 1;
    return state;
  }
  if (role == Role::decode) {
    state.batch = std::min(at_once, pool.most_sequences());
    state.pass_s = pool.decode_s(state.batch);
    state.tpot_s = state.pass_s * pool.passes_a_token();
    state.requests_per_s = state.batch / (pool.passes(lengths.output) * state.pass_s);
    state.ttft_s = state.pass_s;
    state.busy = 1;
    return state;
  }
  if (pool.pool().rules.batching == Batching::fixed)
    return in_batches(pool, lengths, at_once, is_closed(job) ? pool.pool().pool->habits.request_s : -1);
  if (is_closed(job) && alike(job, lengths, pool) && lengths.output > 1)
    return equal_clients(pool, lengths, at_once, pool.pool().pool->habits.request_s, begin_together(job, 0, at_once));
  state = closed_loop(pool, lengths, at_once);
  if (!is_closed(job)) state.queue_s -= std::max(0.0, at_once - state.batch) / state.requests_per_s / 2;  // a mean one of those that wait
  begin(job, lengths, pool, at_once, state);
  if (is_closed(job) && pool.pool().rules.ahead && at_once > 1)
    state.queue_s += (1 - begin_together(job, state.batch, at_once)) * state.first_pass_s();
  state.ttft_s = state.queue_s + state.prefill_s;
  return state;
}

// The same of clients that are so many an instance on average, and think between two requests. Who is alone on an instance meets nobody.
// Equal ones that all fit stay together while they think; of others as many are served as come back in time.
PoolState clients_at(const ServingJob& job, const LoadMoments& lengths, const PoolFormula& pool, double each) {
  const double think_s = is_closed(job) ? job.load.arrivals.think_s : 0;
  const auto slower = [](PoolState state, double times) {
    state.requests_per_s *= times;
    state.busy *= times;
    return state;
  };
  const auto served = [&](double clients) {
    return slower(clients_of(job, lengths, pool, std::max(1.0, clients)), std::min(1.0, clients));
  };
  const PoolState all = served(each);
  if (think_s <= 0) return all;
  const double resting = 1 / (1 + all.requests_per_s * think_s / each);
  if (each <= 1 || (alike(job, lengths, pool) && each <= pool.most_sequences())) return slower(all, resting);
  double low = 0, high = each;
  for (int round = 0; round < rounds; ++round) {
    const double clients = (low + high) / 2;
    (clients + served(clients).requests_per_s * think_s < each ? low : high) = clients;
  }
  return served(high);
}

bool not_carried(const PoolState& pool) { return !std::isfinite(pool.ttft_s); }

// The highest rate below one that is too much, by bisection.
double carried_below(const SideFormula& side, double rate_per_s) {
  return highest(rate_per_s, edge_rounds, [&](double rate) { return std::ranges::none_of(side.together(rate).pools, not_carried); });
}

// Of instances of both that a load is too much for: what they carry. Where prompts go first they leave decoding no time, and what is
// carried beyond capacity says nothing of it. Where that is clearly no less than what comes (passes grow faster than their sequences, so
// that a load settles beside fewer or does not), the load itself says more; where it is nearly as much, that is the edge.
void put_capacity(SideState& state, const SideFormula& side, double rate_per_s) {
  if (std::ranges::none_of(state.pools, not_carried)) return;
  const double carried_per_s = side.carried_per_s();
  const bool clearly_more = carried_per_s > as_good_as * rate_per_s;
  const std::vector<double> each_per_s =
      side.each_per_s(clearly_more ? carried_below(side, rate_per_s) : std::min(carried_per_s, rate_per_s));
  for (std::size_t i = 0; i < state.pools.size(); ++i) {
    if (not_carried(state.pools[i])) state.pools[i].requests_per_s = each_per_s[i];
  }
}

SideState one_side(const ServingJob& job, const SideFormula& side, const LoadMoments& lengths) {
  const Role role = job.pools.front().role;
  if (lengths.rate_per_s <= 0) {
    const double at_once = is_closed(job) ? job.load.arrivals.clients : job.load.requests;
    const auto at = [&](const PoolFormula& pool, double each) { return clients_at(job, pool.load(), pool, each); };
    return is_closed(job) ? side.of_clients(at_once, at) : side.at_once(at_once, at);
  }
  if (role == Role::prefill) return side.prompts(lengths.rate_per_s);
  if (role == Role::both) {
    SideState state = side.together(lengths.rate_per_s);
    put_capacity(state, side, lengths.rate_per_s);
    return state;
  }
  SideState state = side.decoding(lengths.rate_per_s);
  for (PoolState& pool : state.pools) pool.ttft_s += pool.queue_s + pool.first_pass_s();
  state.ttft_s += state.queue_s + state.pass_s;
  state.ttft_high_s += state.queue_s + state.pass_s;
  return state;
}

std::string overload(const Pool& pool, double rate_per_s, const PoolState& state, double per_pool) {
  if (state.requests_per_s <= 0)
    return fmt::format("pool {} is far beyond its capacity: {:.4g} requests/s come, and the formula finds no batch that keeps up",
                       pool.name, rate_per_s);
  return fmt::format("pool {} is beyond its capacity{}: {:.4g} requests/s come, and it carries {:.4g}; {} of {} instances would", pool.name,
                     state.held ? " with caches that are not handed over yet" : "", rate_per_s, state.requests_per_s * per_pool,
                     fmt::format("{:.0f}", std::ceil(rate_per_s / state.requests_per_s * (per_pool > 1 ? 1 : pool.instances))), pool.name);
}

// Both sides: what a request meets on its way from one to the other.
class TwoSides {
 public:
  // The lengths with what prompts find where they are computed; `there`: tokens of a mean one where it is decoded.
  TwoSides(const ServingJob& job, const Deployment& deployment, const LoadMoments& lengths, double tokens, double there)
      : job_(job),
        lengths_(lengths),
        prompts_(std::span(deployment.pools).first(senders(job)), lengths, job.prompt_router),
        decoding_(std::span(deployment.pools).subspan(senders(job)), lengths, job.decode_router),
        hand_overs_(prompts_.pools(), *deployment.transfers, tokens, decoding_.request_s(), decoding_.pools().size(), there) {}

  struct State {
    double rate_per_s = 0;
    SideState prompts, decoding;
    MeanHandOver between;
  };
  [[nodiscard]] State at(double rate_per_s) const {
    State state{
        .rate_per_s = rate_per_s, .prompts = prompts_.prompts(rate_per_s), .decoding = decoding_.decoding(rate_per_s), .between = {}};
    state.between = hand_overs_.at(rate_per_s, state.prompts.shares, state.decoding.shares);
    put_held(state.prompts, prompts_.pools(), rate_per_s, state.between);
    return state;
  }
  // The load's rate; of a closed loop the one at which clients divided by a round lead back to it.
  [[nodiscard]] State state() const {
    if (lengths_.rate_per_s > 0) return at(lengths_.rate_per_s);
    const double clients = is_closed(job_) ? job_.load.arrivals.clients : job_.load.requests;
    const double think_s = is_closed(job_) ? job_.load.arrivals.think_s : 0;
    double low = 0, high = std::min(prompts_.prompts_per_s(), clients / prompts_.least_prompt_s());
    for (int round = 0; round < rounds; ++round) {
      const double rate = (low + high) / 2;
      const State state = at(rate);
      const double round_s = state.prompts.ttft_s + state.between.transfer_s + state.decoding.ttft_s + state.decoding.queue_s +
                             lengths_.output * state.decoding.tpot_s + (state.decoding.pass_s - state.decoding.tpot_s);
      (rate * (round_s + think_s) < clients ? low : high) = rate;
    }
    State state = at(low);
    if (is_closed(job_)) return state;
    const auto at_once = [&](const PoolFormula& pool, double each) { return clients_at(job_, pool.load(), pool, each); };
    state.prompts = prompts_.at_once(clients, at_once);
    return state;
  }
  [[nodiscard]] double prompts_front_s() const { return prompts_.request_s(); }
  [[nodiscard]] const PoolFormula& pool(std::size_t i) const {
    const std::size_t senders = prompts_.pools().size();
    return i < senders ? prompts_.pools()[i] : decoding_.pools()[i - senders];
  }
  // Behind the first token, of a mean request.
  [[nodiscard]] double steps_s(const SideState& decoding) const {
    double sum = 0;
    for (std::size_t i = 0; i < decoding.pools.size(); ++i)
      sum += decoding.shares[i] * (std::max(0.0, decoding_.pools()[i].load().output - 1) * decoding.pools[i].tpot_s);
    return sum;
  }

 private:
  static std::size_t senders(const ServingJob& job) {
    return static_cast<std::size_t>(std::ranges::count(job.pools, Role::prefill, &Pool::role));
  }
  const ServingJob& job_;
  const LoadMoments& lengths_;
  SideFormula prompts_, decoding_;
  HandOverFormula hand_overs_;
};

ServingPrediction begun_prediction(const ServingJob& job) {
  ServingPrediction out;
  out.result.method = "analytic";
  out.result.requests = job.load.requests;
  out.result.counted = out.result.finished = job.load.requests - job.load.warmup;
  return out;
}

double found_share(const PoolFormula& pool) { return pool.load().found / pool.load().input; }

// Adds a pool, or says that it is beyond its capacity.
void put_pool(ServingPrediction& out, const PoolFormula& pool, const PoolState& state, double rate_per_s, double per_pool, double found) {
  if (std::isfinite(state.ttft_s))
    out.result.pools.push_back(pool_of(pool, state, found));
  else if (out.overloaded.empty())
    out.overloaded = overload(*pool.pool().pool, rate_per_s, state, per_pool);
}

void put_latencies(ServingResult& result, const LoadMoments& lengths, double ttft_s, double tpot_s, double answer_s) {
  result.ttft.mean_s = ttft_s;
  result.tpot.mean_s = result.itl.mean_s = lengths.output > 1 ? tpot_s : -1;  // answers of one token have none
  result.e2e.mean_s = ttft_s + answer_s;
}

// Of a load that comes at a rate.
void put_promised(ServingResult& result, const ServingJob& job, const LoadMoments& lengths, const PromisedTimes& times) {
  if (lengths.percentile <= 0 || lengths.rate_per_s <= 0) return;
  result.promised_ttft_s = times.ttft_s;
  result.promised_tpot_s = lengths.output > 1 ? times.tpot_s : -1;
  result.kept = times.keeps(job.promise);
}

ServingPrediction predict_one_side(const ServingJob& job, const Deployment& deployment, const LoadMoments& lengths) {
  ServingPrediction out = begun_prediction(job);
  const Role role = job.pools.front().role;
  const bool open = lengths.rate_per_s > 0, per_pool = role == Role::prefill && open;
  const SideFormula side(deployment.pools, lengths, role == Role::decode ? job.decode_router : job.prompt_router);
  const SideState state = one_side(job, side, lengths);
  const bool once = !open && !is_closed(job);
  double answers_s = 0, requests_per_s = once ? INFINITY : 0;
  for (std::size_t i = 0; i < job.pools.size(); ++i) {
    const PoolState& pool = state.pools[i];
    put_pool(out, side.pools()[i], pool, lengths.rate_per_s * state.shares[i], per_pool ? 1 : job.pools[i].instances,
             found_share(side.pools()[i]));
    const double steps = std::max(0.0, side.pools()[i].load().output - 1);
    answers_s += state.shares[i] * (pool.answer_s >= 0 ? pool.answer_s : steps * pool.tpot_s);
    // At once all have their share from the beginning, and the last to be done ends the load.
    const double in_all_per_s = pool.requests_per_s * job.pools[i].instances;
    if (once && state.shares[i] <= 0) continue;
    requests_per_s = once ? std::min(requests_per_s, in_all_per_s / state.shares[i]) : requests_per_s + in_all_per_s;
  }
  if (!out.overloaded.empty()) return out;
  const double front_s = side.request_s();
  put_stage(out.result, Stage::prefilling, state.prefill_s);
  const bool decodes_alone = role == Role::decode;
  put_stage(out.result, Stage::queued, front_s + (decodes_alone ? 0 : state.queue_s));
  put_stage(out.result, Stage::decode_queued, decodes_alone ? state.queue_s : 0);
  put_stage(out.result, Stage::decoding, answers_s);
  put_latencies(out.result, lengths, state.ttft_s + front_s, role == Role::prefill ? -1 : state.tpot_s, answers_s);
  put_promised(out.result, job, lengths, promised_together(state, front_s));
  if (role == Role::prefill) out.result.promised_tpot_s = -1;
  put_rates(out.result, job, lengths, open ? lengths.rate_per_s : requests_per_s);
  return out;
}

ServingPrediction predict_with(const ServingJob& job, const Deployment& deployment, double tokens, const LoadMoments& lengths,
                               double there) {
  if (!deployment.transfers) return predict_one_side(job, deployment, lengths);
  ServingPrediction out = begun_prediction(job);
  const TwoSides sides(job, deployment, lengths, tokens, there);
  const TwoSides::State state = sides.state();
  const std::size_t senders = state.prompts.pools.size();
  for (std::size_t i = 0; i < job.pools.size(); ++i) {
    const SideState& side = i < senders ? state.prompts : state.decoding;
    const std::size_t at = i < senders ? i : i - senders;
    put_pool(out, sides.pool(i), side.pools[at], state.rate_per_s * side.shares[at], i < senders ? 1 : job.pools[i].instances,
             i < senders ? found_share(sides.pool(i)) : there / lengths.input);
  }
  if (out.overloaded.empty() && state.between.links_busy >= 1)
    out.overloaded = fmt::format("the links between the pools are beyond their capacity: {:.4g} requests/s come, and they carry {:.4g}",
                                 state.rate_per_s, state.rate_per_s / state.between.links_busy);
  if (!out.overloaded.empty()) return out;
  ServingResult& result = out.result;
  const double front_s = sides.prompts_front_s(), tpot_s = state.decoding.tpot_s;
  put_stage(result, Stage::queued, state.prompts.queue_s + front_s);
  put_stage(result, Stage::prefilling, state.prompts.prefill_s);
  put_stage(result, Stage::aligning, state.between.aligning_s);
  put_stage(result, Stage::transferring, state.between.transfer_s - state.between.aligning_s);
  put_stage(result, Stage::decode_queued, state.decoding.queue_s);
  result.kv_transfer_s = state.between.transfer_s;
  result.kv_transfer_bytes = state.between.bytes;
  const double ttft_s = state.prompts.ttft_s + front_s;
  // What lies between the sides is before the first token, or before the second.
  const double between_s = state.between.waiting_s + state.between.transfer_s + state.decoding.queue_s;
  const double answer_s = sides.steps_s(state.decoding);
  put_stage(result, Stage::waiting, state.between.waiting_s);
  if (job.transfer.prefill_answers_first) {
    put_stage(result, Stage::decoding, answer_s);
    put_latencies(result, lengths, ttft_s, tpot_s + lengths.step_share_of_one() * between_s, answer_s + lengths.step_share * between_s);
  } else {
    put_stage(result, Stage::decoding, answer_s + state.decoding.pass_s);
    put_latencies(result, lengths, ttft_s + between_s + state.decoding.pass_s, tpot_s, answer_s);
  }
  put_promised(result, job, lengths, promised_apart(job.transfer, lengths, state.prompts, state.decoding, state.between, front_s));
  put_rates(result, job, lengths, state.rate_per_s);
  return out;
}

}  // namespace

// With caches of prompts: what answers leave of them decides what is found, and that how many answers there are.
ServingPrediction predict_serving(const ServingJob& job, const Deployment& deployment, double tokens) {
  constexpr int settling_rounds = 4;
  const LoadMoments lengths = promised_moments(job);
  if (!keeps_prefixes(job)) return predict_with(job, deployment, tokens, lengths, 0);
  std::vector<double> taken(job.pools.size(), 0);
  ServingPrediction out;
  for (int round = 0; round < settling_rounds; ++round) {
    const bool computes = job.pools.front().role != Role::decode;
    const LoadMoments found = computes ? with_found(lengths, job, deployment, true, taken) : lengths;
    const double there = deployment.transfers ? with_found(lengths, job, deployment, false, taken).found : 0;
    out = predict_with(job, deployment, tokens, found, there);
    if (!out.overloaded.empty()) return out;
    for (std::size_t i = 0; i < taken.size(); ++i) taken[i] = std::min(1.0, out.result.pools[i].pages_share);
  }
  return out;
}

PromisedTimes predicted_promise(const ServingJob& job, const Deployment& deployment) {
  const ServingPrediction prediction = predict_serving(job, deployment, promised_moments(job).input);
  if (!prediction.overloaded.empty()) return {INFINITY, INFINITY};
  return {prediction.result.promised_ttft_s, prediction.result.promised_tpot_s};
}

}  // namespace rehearse::sim
