// What `tune` of a serving job chooses from: plans of one instance, priced, and what pairs of them come to by formula.
#pragma once

#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "sim/serving/deployment.hpp"
#include "sim/serving/load_moments.hpp"
#include "sim/serving/network_transfers.hpp"
#include "sim/serving/pair_search.hpp"
#include "sim/serving/pool_formula.hpp"
#include "sim/serving/tune.hpp"

namespace rehearse::sim {

// A plan of one instance, priced.
struct Candidate {
  std::unique_ptr<const Pool> pool;
  PoolDeployment deployment;
  SidePlan side;
};
using Candidates = std::vector<Candidate>;

// All of a job. Prices that nobody has given are settled, which the notes of the tuning say.
struct TuneSides {
  TuneSides(const ServingJob& of_job, ServingTuning& tuning);

  const ServingJob& job;
  ServingTuneSpec spec;
  Promise promise;  // of each of the two times
  LoadMoments load;
  std::vector<Candidates> together, prompts, decodes;  // by part
  NetworkTransfers::Fabrics fabrics;

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

// What a side takes of the time to first token, and the time per token, at the promise's percentile; infinite beyond its capacity.
struct SideTimes {
  double ttft_s = std::numeric_limits<double>::infinity(), tpot_s = std::numeric_limits<double>::infinity();
};
[[nodiscard]] SideTimes together_times(const TuneSides& sides, const Candidate& candidate, double rate_per_s);  // of an instance

// The formula's answers to what the search over pairs asks, of the prompts of one part and the decodes of another.
class FormulaPairs final : public PairModel {
 public:
  FormulaPairs(const TuneSides& sides, const Candidates& prompts, const Candidates& decodes)
      : sides_(sides), prompts_(prompts), decodes_(decodes), scratch_(sides.job) {}

  [[nodiscard]] int least_decoders(std::size_t plan) const override;
  [[nodiscard]] double decoders_take_s(std::size_t plan, int number) const override;
  [[nodiscard]] double between_s(std::size_t prompt_plan, std::size_t decode_plan) const override;
  [[nodiscard]] int least_prompters(std::size_t plan, double within_s) const override;

  [[nodiscard]] double prompts_take_s(std::size_t plan, double rate_per_s, int number) const;  // at the rate of all
  [[nodiscard]] SideTimes decode_times(std::size_t plan, double rate_per_s) const;             // at the rate of an instance

 private:
  const TuneSides& sides_;
  const Candidates &prompts_, &decodes_;
  mutable ServingJob scratch_;  // whose pools are the two asked about
};

}  // namespace rehearse::sim
