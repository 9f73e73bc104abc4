// The load on a deployment: when requests come and how long they are. Arrivals and lengths have random numbers of their own, so that a
// change of one leaves the other as it was.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "workloads/serving/prompt_blocks.hpp"
#include "workloads/serving/request.hpp"

namespace rehearse::workloads {

// How requests come: as a Poisson process; with gamma-distributed gaps; evenly; each client's next one when it has its answer (and has
// thought); all at time 0; as a trace says.
enum class Arrivals { poisson, gamma, constant, closed, at_once, trace };

struct ArrivalSpec {
  Arrivals kind = Arrivals::at_once;
  double rate_per_s = 0;  // poisson, gamma, constant
  double variation = 1;   // gamma: standard deviation of the gaps over their mean
  int clients = 0;        // closed
  double think_s = 0;     // closed
  double speed = 1;       // trace: times are divided by it
};

// A number of tokens: fixed, uniform over whole numbers, log-normal cut at a largest, or of a table whose rows input and output share.
enum class LengthLaw { fixed, uniform, lognormal, table };

struct LengthSpec {
  LengthLaw law = LengthLaw::fixed;
  int low = 1, high = 1;       // fixed: low; uniform: both inclusive; lognormal: high is the largest
  double median = 0, p90 = 0;  // lognormal
};

struct LoadSpec {
  ArrivalSpec arrivals;
  LengthSpec input, output;
  std::shared_ptr<const std::vector<Request>> trace;  // arrival times and lengths, where a file gives them
  std::shared_ptr<const PromptBlocks> blocks;         // of its prompts, where they are asked for
  std::string trace_note;                             // what else that file has, and nobody uses
  bool truncated = false;  // answers are drawn from the likeliest tokens (top-p, top-k), else the likeliest taken
  int requests = 0;
  int warmup = 0;  // of them, the first, do not count
};

// All requests of a load. Closed loops have no times: 0 for all. Lengths from a table follow it from its beginning, and start over.
[[nodiscard]] std::vector<Request> draw_requests(const LoadSpec& load, std::uint64_t seed);

}  // namespace rehearse::workloads
