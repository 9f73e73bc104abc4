// What a deployment does under a load: one struct whoever found it out.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "sim/serving/serving_job.hpp"
#include "sim/serving/simulation.hpp"

namespace rehearse::sim {

// Over requests (or gaps) that count. -1: there are none, or a formula does not know a percentile.
struct Spread {
  double mean_s = 0, p50_s = -1, p90_s = -1, p99_s = -1;
};

struct PoolResult {
  std::string name;
  int instances = 0, gpus = 0;
  double busy = 0;         // share of the time, mean over instances
  double batch = 0;        // decoding sequences of a pass, mean
  double pass_s = 0;       // mean pass
  double pages_share = 0;  // of the cache that is taken while passes run, mean
  double most_pages_share = 0;
  double cache_tokens = 0;  // that an instance holds
  double page_bytes = 0;    // of a page, over all GPUs of an instance
  double preemptions = 0, recomputed_tokens = 0;
  double prefix_share = 0;   // of the prompts' tokens, found in the cache
  double swapped_bytes = 0;  // to the hosts, over all GPUs
  double swap_share = 0;     // of the time that passes took: until pages were there or gone
};

struct ServingResult {
  std::string method;  // "analytic", "simulated"
  Spread ttft, tpot, e2e, itl;
  std::map<std::string, double> stages;  // mean seconds of a request in each
  PassMix ttft_split, tpot_split;        // the means of the two times by what they go to, seconds
  double requests_per_s = 0, input_tokens_per_s = 0, output_tokens_per_s = 0;
  double input_tokens_per_s_per_prompt_gpu = 0, output_tokens_per_s_per_decode_gpu = 0, output_tokens_per_s_per_gpu = 0;
  double kv_transfer_s = 0;      // mean, alone and with what it shares
  double kv_transfer_bytes = 0;  // mean
  double makespan_s = 0;         // from the first arrival to the last answer, or pass where requests are not served
  int requests = 0, counted = 0, finished = 0, rejected = 0;
  // With faults, of all requests.
  int failures = 0, retried = 0, lost = 0;  // of instances; requests that began again; given up
  double redone_tokens = 0;                 // computed again for them
  double longest_gap_s = 0;                 // between two tokens of an answer; of the simulation
  double attained = -1;                     // share of the counted requests within the promise; -1: nothing is promised
  double goodput_per_s = -1;  // requests: the highest rate that keeps the promise; -1: nobody asked; infinite: too few requests to tell
  double attained_ttft = -1, attained_tpot = -1;
  double promised_ttft_s = -1, promised_tpot_s = -1;  // what the promised share of those that are done keeps to; -1: unknown
  bool kept = true;                                   // the promise
  double cost_per_s = 0;
  std::vector<PoolResult> pools;

  [[nodiscard]] int gpus() const {
    int sum = 0;
    for (const PoolResult& pool : pools) sum += pool.gpus;
    return sum;
  }
};

[[nodiscard]] ServingResult result_of(const ServingJob& job, const ServingSetup& setup, const ServingRun& run);

}  // namespace rehearse::sim
