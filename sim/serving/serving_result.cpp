#include "sim/serving/serving_result.hpp"

#include <algorithm>
#include <cmath>

#include "sim/serving/time_splits.hpp"
#include "workloads/serving/pass_operators.hpp"

namespace rehearse::sim {
namespace {

constexpr Spread no_spread{-1, -1, -1, -1};  // of no request

double at_share(const std::vector<double>& sorted, double share) {
  const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(sorted.size())));
  return sorted[std::max<std::size_t>(rank, 1) - 1];
}

Spread spread_of(std::vector<double> values) {
  if (values.empty()) return no_spread;
  std::ranges::sort(values);
  double sum = 0;
  for (const double value : values) sum += value;
  return {sum / static_cast<double>(values.size()), at_share(values, 0.5), at_share(values, 0.9), at_share(values, 0.99)};
}

bool counts(const ServingJob& job, std::size_t request) { return request >= static_cast<std::size_t>(job.load.warmup); }

// Of the requests that count and are done.
template <class Value>
std::vector<double> values_of(const ServingJob& job, const ServingRun& run, Value value) {
  std::vector<double> out;
  for (std::size_t i = 0; i < run.requests.size(); ++i) {
    if (counts(job, i) && run.requests[i].stage == Stage::done) out.push_back(value(run.requests[i]));
  }
  return out;
}

std::vector<double> tpots_of(const ServingJob& job, const ServingRun& run) {
  std::vector<double> out;
  for (std::size_t i = 0; i < run.requests.size(); ++i) {
    const RequestState& request = run.requests[i];
    if (counts(job, i) && request.stage == Stage::done && request.tokens.output > 1) out.push_back(request.tpot_s());
  }
  return out;
}

// With prompts isolated nobody does.
bool decodes(const ServingJob& job) { return job.pools.back().role != Role::prefill; }

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

void count_latencies(ServingResult& result, const ServingJob& job, const ServingRun& run) {
  result.ttft = spread_of(values_of(job, run, [](const RequestState& r) { return r.ttft_s(); }));
  result.tpot = spread_of(decodes(job) ? tpots_of(job, run) : std::vector<double>{});
  result.e2e = spread_of(values_of(job, run, [](const RequestState& r) { return r.e2e_s(); }));
  for (std::size_t stage = 0; stage < timed_stages; ++stage) {
    result.stages[std::string(name_of(static_cast<Stage>(stage)))] =
        mean_of(values_of(job, run, [stage](const RequestState& r) { return r.spent_s[stage]; }));
  }
  result.kv_transfer_s = result.stages["aligning"] + result.stages["transferring"];
  result.kv_transfer_bytes = mean_of(values_of(job, run, [](const RequestState& r) { return r.transfer_bytes; }));
}

// A client is shown no more at once than what a mean answer has behind its first token.
void count_gaps(ServingResult& result, const ServingJob& job, const ServingRun& run) {
  const double behind_first = mean_of(values_of(job, run, [](const RequestState& r) { return r.tokens.output - 1.0; }));
  const int most = std::max(1, static_cast<int>(std::round(behind_first)));
  Gaps gaps;
  for (std::size_t pool = 0; pool < run.pools.size(); ++pool) {
    gaps.merge(run.pools[pool].gaps.shown_by(std::min(most, job.pools[pool].habits.stream)));
    result.longest_gap_s = std::max(result.longest_gap_s, run.pools[pool].gaps.largest_s());  // between two passes
  }
  if (gaps.count() == 0) {
    result.itl = no_spread;
    return;
  }
  result.itl = {gaps.mean_s(), gaps.quantile_s(0.5), gaps.quantile_s(0.9), gaps.quantile_s(0.99)};
}

int gpus_of(const ServingJob& job, Role without) {
  int sum = 0;
  for (const Pool& pool : job.pools) sum += pool.role != without ? pool.gpus() : 0;
  return sum;
}

// Between the first arrival that counts and the last answer: tokens of what counts. With prompts isolated answers end with their first.
void count_rates(ServingResult& result, const ServingJob& job, const ServingRun& run) {
  double first_s = INFINITY, last_s = 0, input = 0, output = 0;
  for (std::size_t i = 0; i < run.requests.size(); ++i) {
    const RequestState& request = run.requests[i];
    if (!counts(job, i) || request.stage != Stage::done) continue;
    first_s = std::min(first_s, request.arrival_s);
    last_s = std::max(last_s, request.last_s);
    input += request.tokens.input;
    output += static_cast<double>(decodes(job) ? request.tokens.output : 1);
  }
  if (!(last_s > first_s)) return;
  const double seconds = last_s - first_s;
  result.requests_per_s = result.finished / seconds;
  result.input_tokens_per_s = input / seconds;
  result.output_tokens_per_s = output / seconds;
  result.output_tokens_per_s_per_gpu = result.output_tokens_per_s / job.gpus();
  if (const int gpus = gpus_of(job, Role::decode)) result.input_tokens_per_s_per_prompt_gpu = result.input_tokens_per_s / gpus;
  if (const int gpus = gpus_of(job, Role::prefill)) result.output_tokens_per_s_per_decode_gpu = result.output_tokens_per_s / gpus;
}

void judge(ServingResult& result, const ServingJob& job, const ServingRun& run) {
  const Promise& promise = job.promise;
  if (promise.ttft_s <= 0 && promise.tpot_s <= 0) return;
  double ttft = 0, tpot = 0, both = 0;
  for (std::size_t i = 0; i < run.requests.size(); ++i) {
    const RequestState& request = run.requests[i];
    if (!counts(job, i) || request.stage != Stage::done) continue;
    const bool fast = promise.ttft_s <= 0 || request.ttft_s() <= promise.ttft_s;
    const bool steady = promise.tpot_s <= 0 || request.tpot_s() <= promise.tpot_s;
    ttft += fast ? 1 : 0;
    tpot += steady ? 1 : 0;
    both += fast && steady ? 1 : 0;
  }
  const auto at_promise = [&](std::vector<double> values) {
    std::ranges::sort(values);
    return values.empty() ? -1 : at_share(values, promise.percentile);
  };
  result.promised_ttft_s = at_promise(values_of(job, run, [](const RequestState& r) { return r.ttft_s(); }));
  result.promised_tpot_s = decodes(job) ? at_promise(tpots_of(job, run)) : -1;
  const double all = std::max(1, result.counted);
  result.attained = both / all;
  result.attained_ttft = ttft / all;
  result.attained_tpot = tpot / all;
  result.kept = promise.both ? result.attained >= promise.percentile
                             : result.attained_ttft >= promise.percentile && result.attained_tpot >= promise.percentile;
}

PoolResult pool_result(const Pool& pool, const PoolSetup& setup, const ServingRun::Pool& run, double seconds) {
  PoolResult out;
  out.name = pool.name;
  out.instances = pool.instances;
  out.gpus = pool.gpus();
  out.cache_tokens = static_cast<double>(setup.rules.pages * setup.rules.page);
  out.page_bytes = workloads::kv_bytes_per_token(pool.plan).per_instance * setup.rules.page;
  double busy = 0, passes = 0, decode_passes = 0, batch = 0, pages = 0, swap_s = 0, begun = 0, found = 0;
  for (const InstanceUse& use : run.instances) {
    busy += use.busy_s;
    passes += use.passes;
    decode_passes += use.decode_passes;
    batch += use.batch;
    pages += use.page_seconds;
    out.most_pages_share = std::max(out.most_pages_share, static_cast<double>(use.most_pages) / static_cast<double>(setup.rules.pages));
    out.preemptions += use.preemptions;
    out.recomputed_tokens += static_cast<double>(use.recomputed_tokens);
    out.swapped_bytes += static_cast<double>(use.swapped_pages) * out.page_bytes;
    swap_s += use.swap_s;
    begun += use.begun_tokens;
    found += use.found_tokens;
  }
  if (seconds > 0) out.busy = busy / seconds / pool.instances;
  if (decode_passes > 0) out.batch = batch / decode_passes;
  if (passes > 0) out.pass_s = busy / passes;
  if (begun > 0) out.prefix_share = found / begun;
  if (busy > 0) out.swap_share = swap_s / busy;
  if (busy > 0) out.pages_share = pages / busy / static_cast<double>(setup.rules.pages);
  return out;
}

}  // namespace

ServingResult result_of(const ServingJob& job, const ServingSetup& setup, const ServingRun& run) {
  ServingResult result;
  result.method = "simulated";
  result.requests = static_cast<int>(run.requests.size());
  for (std::size_t i = 0; i < run.requests.size(); ++i) {
    result.rejected += run.requests[i].stage == Stage::rejected ? 1 : 0;
    result.lost += run.requests[i].stage == Stage::lost ? 1 : 0;
    result.retried += run.requests[i].retries > 0 ? 1 : 0;
    result.redone_tokens += static_cast<double>(run.requests[i].redone);
    if (!counts(job, i)) continue;
    ++result.counted;
    result.finished += run.requests[i].stage == Stage::done ? 1 : 0;
  }
  result.failures = run.failures;
  count_latencies(result, job, run);
  count_gaps(result, job, run);
  put_simulated_splits(result, run);
  count_rates(result, job, run);
  judge(result, job, run);
  if (!run.requests.empty()) result.makespan_s = std::max(0.0, run.end_s - run.requests.front().arrival_s);
  for (std::size_t i = 0; i < job.pools.size(); ++i) {
    result.cost_per_s += job.pools[i].price_per_s * job.pools[i].gpus();
    result.pools.push_back(pool_result(job.pools[i], setup.pools[i], run.pools[i], result.makespan_s));
  }
  return result;
}

}  // namespace rehearse::sim
