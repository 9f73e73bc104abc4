// What `tune` of a serving job chooses from: plans of one instance, priced.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/serving/deployment.hpp"
#include "sim/serving/load_moments.hpp"
#include "sim/serving/pair_search.hpp"
#include "sim/serving/tune.hpp"

namespace rehearse::sim {

// A plan of one instance, priced.
struct Candidate {
  std::unique_ptr<const Pool> pool;
  PoolDeployment deployment;
  SidePlan side;
  // Another one that computes prompts in the same passes: they differ in how many may decode. nullptr: none is before it.
  const Candidate* alike = nullptr;
};
using Candidates = std::vector<Candidate>;

// All of a job. Prices that nobody has given are settled, which the notes of the tuning say.
struct TuneSides {
  TuneSides(const ServingJob& of_job, ServingTuning& tuning);

  const ServingJob& job;
  ServingTuneSpec spec;
  Promise promise;
  LoadMoments load;
  std::vector<Candidates> together, prompts, decodes;  // by part

  [[nodiscard]] int most(const Candidate& candidate) const { return spec.inventory[candidate.side.part] / candidate.side.gpus; }
  [[nodiscard]] double ttft_within_s() const;  // infinite: nothing is promised
  [[nodiscard]] double tpot_within_s() const;
  [[nodiscard]] std::string kind_of(std::size_t prompt_part, std::size_t decode_part) const;
  [[nodiscard]] std::string kind_of(std::size_t part) const;  // together
};

[[nodiscard]] Pool with_number(const Candidate& candidate, int instances);

// The least number of instances from 1 to `most` that does; more always do where fewer do.
template <class Does>
int least_number(int most, Does does) {
  if (most < 1 || !does(most)) return no_number;
  int low = 0, high = most;
  while (high - low > 1) {
    const int middle = low + (high - low) / 2;
    (does(middle) ? high : low) = middle;
  }
  return high;
}

}  // namespace rehearse::sim
