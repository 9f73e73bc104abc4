#include "sim/serving/service_days.hpp"

#include <algorithm>
#include <cmath>

#include "sim/serving/service_history.hpp"
#include "sim/serving/serving_result.hpp"

namespace rehearse::sim {
namespace {

constexpr double minute_s = 60;

void check(const ServingJob& job) {
  if (!job.scenario)
    throw config::InputError("run needs to know what fails", "write for example faults: {nodes: {source: poisson, rate: 0.005 /day}}");
  if (job.promise.ttft_s <= 0 && job.promise.tpot_s <= 0)
    throw config::InputError("run needs a promise to be kept", "write slo: {ttft: 1 s, tpot: 50 ms}");
  using workloads::Arrivals;
  if (job.load.arrivals.kind == Arrivals::closed || job.load.arrivals.kind == Arrivals::at_once)
    throw config::InputError("run needs requests that come over time", "write arrivals: {poisson: 6 /s} and time: 1 day, or a trace");
  if (job.load.requests < job.load.warmup + 2) throw config::InputError("run needs requests to count: there are fewer than two");
}

void count_requests(ServiceDay& day, const ServingJob& job, const ServingRun& run) {
  const Promise& promise = job.promise;
  for (std::size_t i = static_cast<std::size_t>(job.load.warmup); i < run.requests.size(); ++i) {
    const RequestState& request = run.requests[i];
    const auto at = static_cast<std::size_t>(request.arrival_s / minute_s);
    if (at >= day.minutes.size()) day.minutes.resize(at + 1);
    const bool done = request.stage == Stage::done;
    const bool fast = done && (promise.ttft_s <= 0 || request.ttft_s() <= promise.ttft_s);
    const bool steady = done && (promise.tpot_s <= 0 || request.tpot_s() <= promise.tpot_s);
    ServiceMinute& minute = day.minutes[at];
    ++minute.requests;
    minute.ttft += fast ? 1 : 0;
    minute.tpot += steady ? 1 : 0;
    minute.both += fast && steady ? 1 : 0;
  }
}

void count_minutes(ServiceDay& day, const Promise& promise) {
  int kept = 0, all = 0, below = 0;
  for (const ServiceMinute& minute : day.minutes) {
    day.requests += minute.requests;
    day.within += minute.both;
    if (minute.requests == 0) continue;
    ++all;
    const bool good = is_kept(minute, promise);
    kept += good ? 1 : 0;
    below = good ? 0 : below + 1;
    day.longest_below_min = std::max(day.longest_below_min, below);
  }
  if (all > 0) day.minutes_kept = static_cast<double>(kept) / all;
}

ServiceDay day_of(const ServingJob& job, const ServingSetup& setup) {
  const double seconds = setup.requests.back().arrival_s;
  ServiceDay day;
  day.faults = setup.faults;
  const ServingRun run = simulate_serving(setup);
  const ServingResult result = result_of(job, setup, run);
  count_requests(day, job, run);
  count_minutes(day, job.promise);
  day.within_per_s = day.within / (seconds - setup.requests[static_cast<std::size_t>(job.load.warmup)].arrival_s);
  day.lost = result.lost;
  day.retried = result.retried;
  day.recomputed_tokens = result.redone_tokens;
  day.longest_gap_s = result.longest_gap_s;
  day.instance_failures = result.failures;
  std::size_t instance = 0;
  for (const Pool& pool : job.pools) {
    double up = 0;
    for (int i = 0; i < pool.instances; ++i) up += (1 - run.down_s[instance++] / seconds) / pool.instances;
    day.up.push_back(up);
  }
  return day;
}

}  // namespace

bool is_kept(const ServiceMinute& minute, const Promise& promise) {
  const double needed = promise.percentile * minute.requests;
  return promise.both ? minute.both >= needed : minute.ttft >= needed && minute.tpot >= needed;
}

double ServiceDays::availability(const ServiceDay& run) const {
  return healthy.within > 0 ? static_cast<double>(run.within) / healthy.within : 0;
}

ServiceDays run_service(const ServingJob& job, const Deployment& deployment, int runs, const std::function<void(double)>& progress) {
  check(job);
  ServingSetup setup = setup_of(job, deployment);
  ServiceDays days;
  days.seconds = setup.requests.back().arrival_s;
  days.percentile = job.promise.percentile;
  for (const Pool& pool : job.pools) days.pools.push_back(pool.name);
  setup.faults.clear();
  days.healthy = day_of(job, setup);
  for (int run = 0; run < runs; ++run) {
    progress(static_cast<double>(run + 1) / (runs + 1));
    setup.faults = draw_service_faults(job, job.seed + static_cast<std::uint64_t>(run), days.seconds);
    setup.faults.insert(setup.faults.end(), job.faults.begin(), job.faults.end());
    std::ranges::stable_sort(setup.faults, {}, &ServiceFault::from_s);
    days.runs.push_back(day_of(job, setup));
  }
  return days;
}

}  // namespace rehearse::sim
