// What `tune` of a serving job chooses from: plans of one instance, priced.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "sim/serving/deployment.hpp"
#include "sim/serving/load_moments.hpp"
#include "sim/serving/pair_search.hpp"
#include "sim/serving/placement.hpp"
#include "sim/serving/tune.hpp"

namespace rehearse::sim {

// A plan of one instance, priced.
struct PoolCandidate {
  std::unique_ptr<const Pool> pool;
  PoolDeployment deployment;
  SidePlan side;
  // So many others differ in limits without effect on what the formula says of any load of these requests, and which (`tune` keys).
  int twins = 0;
  std::vector<std::string> free_keys = {};
};
using Candidates = std::vector<PoolCandidate>;

// All of a job. Prices that nobody has given are settled, which the notes of the tuning say.
struct TuneSides {
  TuneSides(
      const ServingJob& of_job, ServingTuning& tuning, const std::function<void(double)>& progress = [](double) {});

  const ServingJob& job;
  ServingTuneSpec spec;
  Promise promise;
  LoadMoments load;
  std::vector<Candidates> together, prompts, decodes;  // by part

  [[nodiscard]] int most(const PoolCandidate& candidate) const {  // instances that the inventory holds, on whole nodes as they are placed
    const std::size_t part = candidate.side.part;
    const int node = job.parts[part].cluster.gpus_per_node, gpus = candidate.side.gpus;
    return instances_within(spec.inventory[part], candidate.pool->spread ? (gpus + node - 1) / node * node : gpus, node);
  }
  [[nodiscard]] double ttft_within_s() const;  // infinite: nothing is promised
  [[nodiscard]] double tpot_within_s() const;
  [[nodiscard]] std::string kind_of(std::size_t prompt_part, std::size_t decode_part) const;
  [[nodiscard]] std::string kind_of(std::size_t part) const;  // together
};

[[nodiscard]] Pool with_number(const PoolCandidate& candidate, int instances);
// What tells deployments of one job apart.
using PoolsKey =
    std::vector<std::tuple<Role, std::string, std::size_t, int, int, int, int, int, workloads::ServingPrecision, int, int, int>>;
[[nodiscard]] PoolsKey pools_key(const TunedDeployment& deployment);
// Another pool of a deployment, with what its plan's twins make of the deployment's.
void add_pool(TunedDeployment& deployment, const PoolCandidate& candidate, int instances);

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
