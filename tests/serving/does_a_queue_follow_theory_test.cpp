// Constant prices and Poisson arrivals: the waiting times are those of queueing theory.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "config/random.hpp"
#include "deployments.hpp"
#include "sim/serving/company.hpp"
#include "sim/serving/goodput.hpp"
#include "sim/serving/serving_result.hpp"

namespace rehearse::tests {
namespace {

using sim::ServingSetup;

constexpr double token_s = 1e-6;     // services are whole numbers of tokens: mean 10^6 of them makes that invisible
constexpr double mean_tokens = 1e6;  // a service takes a second on average

double exponential(config::Random& random) { return -std::log(random.uniform()); }

ServingSetup queue(int servers, double rate_per_s, bool exponential_service, int requests, std::uint64_t seed) {
  ServingSetup setup;
  setup.pools = {prompt_servers(servers, token_s)};
  setup.prompt_router = "shortest-wait";
  setup.seed = seed;
  config::Random random(config::mixed(seed));
  double now = 0;
  for (int i = 0; i < requests; ++i) {
    now += exponential(random) / rate_per_s;
    const double tokens = exponential_service ? std::ceil(exponential(random) * mean_tokens) : mean_tokens;
    setup.requests.push_back({now, {static_cast<int>(tokens), 1}});
  }
  return setup;
}

double mean_wait_s(const ServingSetup& setup) {
  const sim::ServingRun run = simulate_serving(setup);
  double sum = 0;
  for (const sim::RequestState& request : run.requests) sum += request.spent_s[static_cast<std::size_t>(sim::Stage::queued)];
  return sum / static_cast<double>(run.requests.size());
}

// REHEARSE_SOAK=1 in the environment: as many requests as it takes to know a mean to a percent.
bool soaks() { return std::getenv("REHEARSE_SOAK") != nullptr; }

// Mean and standard error over seeds.
struct Estimate {
  double mean = 0, error = 0;
};

Estimate estimate(int servers, double load, bool exponential_service) {
  constexpr int seeds = 10;
  const int requests = soaks() ? 1'000'000 : 100'000;
  std::vector<double> waits;
  for (int seed = 1; seed <= seeds; ++seed) {
    waits.push_back(mean_wait_s(queue(servers, load * servers, exponential_service, requests, static_cast<std::uint64_t>(seed))));
  }
  Estimate out;
  for (const double wait : waits) out.mean += wait / seeds;
  double squares = 0;
  for (const double wait : waits) squares += (wait - out.mean) * (wait - out.mean);
  out.error = std::sqrt(squares / (seeds - 1) / seeds);
  return out;
}

// Erlang's C: the chance to wait at n servers that are offered a load of a.
double erlang_c(int n, double a) {
  double blocked = 1;  // Erlang's B, by its recursion
  for (int k = 1; k <= n; ++k) blocked = a * blocked / (k + a * blocked);
  return blocked / (1 - a / n * (1 - blocked));
}

// M/M/n: W = C(n, a) / (n - a) services.
double mmn_wait_s(int n, double load) { return erlang_c(n, load * n) / (n - load * n); }

void expect_theory(int servers, double load, bool exponential_service, double theory_s) {
  const Estimate found = estimate(servers, load, exponential_service);
  EXPECT_NEAR(found.mean, theory_s, 4 * found.error) << servers << " servers at load " << load;
  if (soaks()) {
    EXPECT_NEAR(found.mean, theory_s, 0.01 * theory_s) << servers << " servers at load " << load;
  }
}

TEST(AQueueFollowsTheory, with_one_server_and_exponential_services) {
  for (const double load : {0.3, 0.7}) expect_theory(1, load, true, load / (1 - load));
}

// Pollaczek and Khinchine: half of the exponential wait.
TEST(AQueueFollowsTheory, with_one_server_and_equal_services) {
  for (const double load : {0.3, 0.7}) expect_theory(1, load, false, load / (1 - load) / 2);
}

TEST(AQueueFollowsTheory, with_several_servers_behind_the_router_that_knows_their_work) {
  for (const int servers : {2, 8}) expect_theory(servers, 0.7, true, mmn_wait_s(servers, 0.7));
}

// Decoding slots are servers too: n sequences at once, each served for as many passes as it has tokens. A service starts at the end of a
// pass, of which a mean service has a thousand.
TEST(AQueueFollowsTheory, with_the_slots_of_a_batch_as_servers) {
  constexpr int slots = 4, seeds = 10, requests = 20'000;
  constexpr double load = 0.7, passes = 1000, pass_s = 1 / passes;
  std::vector<double> waits;
  double mean = 0;
  for (int seed = 1; seed <= seeds; ++seed) {
    ServingSetup setup;
    sim::InstanceRules rules;
    rules.role = sim::Role::decode;
    rules.sequences = slots;
    rules.pages = 1'000'000;
    setup.pools = {{"slots", rules, std::make_shared<ConstantPrice>(0, pass_s), 1}};
    config::Random random(config::mixed(static_cast<std::uint64_t>(seed)));
    double now = 0;
    for (int i = 0; i < requests; ++i) {
      now += exponential(random) / (load * slots);
      setup.requests.push_back({now, {1, static_cast<int>(std::ceil(exponential(random) * passes))}});
    }
    const sim::ServingRun run = simulate_serving(setup);
    double sum = 0;
    for (const sim::RequestState& request : run.requests) sum += request.spent_s[static_cast<std::size_t>(sim::Stage::waiting)];
    waits.push_back(sum / requests);
    mean += waits.back() / seeds;
  }
  double squares = 0;
  for (const double wait : waits) squares += (wait - mean) * (wait - mean);
  const double error = std::sqrt(squares / (seeds - 1) / seeds);
  EXPECT_NEAR(mean, mmn_wait_s(slots, load), 4 * error + 2 * pass_s);
}

// Goodput: at the rate that is found the promise is kept, 2 % above it is not.
TEST(Goodput, is_the_highest_rate_that_keeps_the_promise) {
  const auto job_at = [](double rate) {
    return sim::read_serving_job(config::Node::load_text("model: llama3-8b\ncluster: dgx-h100-ndr400\nsoftware: vllm\nserving:\n"
                                                         "  pools: {all: {role: both}}\n"
                                                         "  load: {arrivals: {poisson: " +
                                                             std::to_string(rate) +
                                                             " /s}, input: 1000, output: 100, requests: 3000}\n"
                                                             "  slo: {ttft: 200 ms, tpot: 20 ms}\n",
                                                         "job.yaml"),
                                 "job");
  };
  const auto keeps = [&](double rate) {
    const sim::ServingJob job = job_at(rate);
    const sim::Deployment deployment = deploy(job);
    const ServingSetup setup = setup_of(job, deployment);
    return result_of(job, setup, simulate_serving(setup)).kept;
  };
  const sim::ServingJob job = job_at(3);
  const double found = goodput_of(job, deploy(job), [](double) {});
  EXPECT_TRUE(keeps(found));
  EXPECT_FALSE(keeps(found * 1.02));
}

// Passes of a + b k: of the number of sequences n has the chance (r)_n / n! z^n (1 - z)^r, r = a / b + 1 (negative binomial), so nobody is
// there for a share (1 - z)^r of the time, z = mean / (r + mean); of passes that do not grow it is Poisson's.
TEST(WhoDecodesBesideOne, is_as_processor_sharing_says) {
  for (const double mean : {0.05, 1.0, 7.5}) {
    const sim::Company alike(mean, 1, [](double) { return 2.0; });
    EXPECT_NEAR(alike.nobody(), std::exp(-mean), 1e-9) << mean;
    for (const double share : {0.1, 1.0, 3.0}) {
      const sim::Company growing(mean, 1, [share](double number) { return 1 + share * number; });
      const double r = 1 / share + 1, z = mean / (r + mean);
      EXPECT_NEAR(growing.nobody(), std::pow(1 - z, r), 2e-4) << mean << ' ' << share;
      EXPECT_NEAR(growing.mean([](double others) { return others; }), mean, 1e-3 * mean) << mean << ' ' << share;
    }
    // Bunches alone: the same chances with r = 1 / bunched.
    for (const double bunched : {0.05, 0.3}) {
      const sim::Company bunches(
          mean, 1, [](double) { return 2.0; }, bunched);
      EXPECT_NEAR(bunches.nobody(), std::pow(1 + mean * bunched, -1 / bunched), 2e-4) << mean << ' ' << bunched;
    }
  }
}

// Nearly all in bunches, of which the largest are many times the mean, where passes become longer by leaps.
TEST(WhoDecodesBesideOne, are_as_many_in_the_mean_however_they_come) {
  for (const double mean : {0.5, 3.2, 12.0, 21.8}) {
    for (const double bunched : {0.6, 0.8, 0.99}) {
      for (const double leap : {1.0, 8.0, 64.0}) {
        const sim::Company company(
            mean, 1, [leap](double number) { return 1 + 0.3 * leap * std::ceil(number / leap); }, bunched);
        EXPECT_NEAR(company.mean([](double others) { return others; }), mean, 1e-6 * mean) << mean << ' ' << bunched << ' ' << leap;
      }
    }
  }
}

}  // namespace
}  // namespace rehearse::tests
