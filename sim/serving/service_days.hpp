// A deployment over days with failures, against itself without them (docs/serving.md, "Days with failures").
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/serving/deployment.hpp"

namespace rehearse::sim {

// Requests that came within a minute, and how many were within the promise.
struct ServiceMinute {
  int requests = 0, ttft = 0, tpot = 0, both = 0;
};

struct ServiceDay {
  std::vector<ServiceFault> faults;
  std::vector<ServiceMinute> minutes;
  std::vector<double> up;  // [pool] share of the time of its instances
  int requests = 0, within = 0, lost = 0, retried = 0;
  double recomputed_tokens = 0, longest_gap_s = 0;
  double within_per_s = 0;    // requests within the promise: goodput
  double minutes_kept = 1;    // share of those that had requests
  int longest_below_min = 0;  // minutes on end in which the promise was not kept
  int instance_failures = 0;
};

struct ServiceDays {
  double seconds = 0;  // in which requests came
  double percentile = 0;
  std::vector<std::string> pools;
  ServiceDay healthy;
  std::vector<ServiceDay> runs;                                    // the same requests, other failures
  [[nodiscard]] double availability(const ServiceDay& run) const;  // its goodput over that without failures
};

// Whether the promise was kept for the requests of a minute.
[[nodiscard]] bool is_kept(const ServiceMinute& minute, const Promise& promise);

// Throws InputError where the job has no `faults`, promises nothing, or has no requests over time.
[[nodiscard]] ServiceDays run_service(const ServingJob& job, const Deployment& deployment, int runs,
                                      const std::function<void(double)>& progress);

}  // namespace rehearse::sim
