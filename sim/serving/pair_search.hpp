// The cheapest pair of plans and numbers of instances that keeps a promise: exact over all pairs (docs/serving.md, "Tuning").
//
// The two sides meet in three places only: the time that a cache takes between them, the time to first token that both share, and GPUs of
// one kind that both may take. For a decoding plan the least number for its time per token does not depend on the other side; from there it
// goes up while that can save instances of the other.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

namespace rehearse::sim {

inline constexpr int no_number = std::numeric_limits<int>::max();  // of instances would do

// A plan of one instance of a side.
struct SidePlan {
  std::size_t part = 0;
  int gpus = 1;
  double cost = 1;  // of one instance
};

// What the search asks. Numbers are of instances.
class PairModel {
 public:
  virtual ~PairModel() = default;
  // Of a decoding plan: no fewer keep the time per token; no_number: none does.
  [[nodiscard]] virtual int least_decoders(std::size_t plan) const = 0;
  // What so many take of the time to first token; falls with the number.
  [[nodiscard]] virtual double decoders_take_s(std::size_t plan, int number) const = 0;
  // What lies between the two takes so many seconds at least; infinite: they cannot be paired.
  [[nodiscard]] virtual double between_s(std::size_t prompt_plan, std::size_t decode_plan) const = 0;
  // The least number that computes prompts within a time; falls with the time; no_number: none does.
  [[nodiscard]] virtual int least_prompters(std::size_t plan, double within_s) const = 0;
  // Whether so many of both keep the promise together. It is only asked where the bounds above do not say no.
  [[nodiscard]] virtual bool keeps(std::size_t prompt_plan, int prompters, std::size_t decode_plan, int decoders) const = 0;
};

struct PairProblem {
  std::vector<SidePlan> prompts, decodes;
  std::vector<int> inventory;  // GPUs by part
  double within_s = 0;         // to the first token
};

struct PairChoice {
  std::size_t prompts = 0, decodes = 0;  // plans
  int prompters = 0, decoders = 0;
  double cost = 0;
  int gpus = 0;
};

struct PairAnswer {
  std::vector<PairChoice> best;  // the cheapest of each pair, of equal cost the one with fewer GPUs, from the cheapest on
  std::uint64_t pairs = 0;       // of plans that work for themselves
  std::uint64_t looked_at = 0;   // the others cost more than what was found, whatever lies between them
  double bound = 0;              // least cost of those not looked at; infinite: all were
};

[[nodiscard]] PairAnswer cheapest_pairs(const PairProblem& problem, const PairModel& model, std::size_t keep);

}  // namespace rehearse::sim
