#include "sim/serving/goodput.hpp"

#include <algorithm>
#include <cmath>

#include "sim/serving/load_moments.hpp"
#include "sim/serving/serving_result.hpp"

namespace rehearse::sim {
namespace {

constexpr int doublings = 20;
constexpr double exact_to = 1.01;
constexpr double simulations = 16;  // about

}  // namespace

double goodput_of(const ServingJob& job, const Deployment& deployment, const std::function<void(double)>& progress) {
  const double rate_per_s = moments_of(job.load, job.seed).rate_per_s;
  const ServingSetup asked = setup_of(job, deployment);
  double done = 0;
  const auto keeps = [&](double times) {
    ServingSetup setup = asked;
    for (workloads::Request& request : setup.requests) request.arrival_s /= times;
    progress(std::min(1.0, ++done / simulations));
    return result_of(job, setup, simulate_serving(setup)).kept;
  };
  double low = 1, high = 2;
  if (keeps(1)) {
    for (int i = 0; keeps(high); ++i, low = high, high *= 2) {
      if (i == doublings) return INFINITY;
    }
  } else {
    for (int i = 0; !keeps(low /= 2); ++i) {
      if (i == doublings) return 0;
    }
    high = 2 * low;
  }
  while (high > low * exact_to) {
    const double middle = std::sqrt(low * high);
    (keeps(middle) ? low : high) = middle;
  }
  return low * rate_per_s;
}

bool has_goodput(const ServingJob& job) {
  return (job.promise.ttft_s > 0 || job.promise.tpot_s > 0) && moments_of(job.load, job.seed).rate_per_s > 0;
}

}  // namespace rehearse::sim
