// Prompts of different lengths at one instance by formula: a chain by the tokens of prompts that are there when a pass begins, in units,
// since who comes first is computed first, however his tokens are cut into passes. As pass_queue.hpp has it for equal ones, whose number
// the chain there knows; here a pass that takes so many units makes as many prompts whole as that many mean ones are (assumption).
#pragma once

#include <vector>

#include "sim/serving/banded_chain.hpp"
#include "sim/serving/pass_queue.hpp"

namespace rehearse::sim {

// Rows of chances by units, one for each phase: arrivals at other instances since the last one here.
class PhasedChances {
 public:
  PhasedChances() = default;
  PhasedChances(int phases, int units)
      : phases_(phases), chances_(static_cast<std::size_t>(phases), std::vector<double>(static_cast<std::size_t>(units), 0)) {}
  [[nodiscard]] std::vector<double>& of(int phase) { return chances_[static_cast<std::size_t>(phase)]; }
  [[nodiscard]] const std::vector<double>& of(int phase) const { return chances_[static_cast<std::size_t>(phase)]; }
  [[nodiscard]] int phases() const { return phases_; }
  [[nodiscard]] int units() const { return chances_.empty() ? 0 : static_cast<int>(chances_.front().size()); }
  void add(int phase, int units, double chance) { of(phase)[static_cast<std::size_t>(units)] += chance; }
  [[nodiscard]] double sum() const;
  void scale(double by);

 private:
  int phases_ = 0;
  std::vector<std::vector<double>> chances_;
};

class UnlikePasses : public PromptPasses {
 public:
  // Of a queue with `sizes`.
  explicit UnlikePasses(const PassQueue& queue);
  [[nodiscard]] double first_token_within_s(double share) const override;
  [[nodiscard]] std::vector<double> variances(const std::vector<double>& tokens, const std::vector<double>& answers_s) const override;

 private:
  // What comes in a pass from a phase on: chances of units, by the phase at its end.
  using Coming = std::vector<std::vector<PhasedChances>>;  // [units taken][phase]
  [[nodiscard]] int states() const { return units_ * queue_.turns; }
  [[nodiscard]] int state(int units, int phase) const { return units * queue_.turns + phase; }
  [[nodiscard]] int last(int units) const { return units < units_ ? units : units_ - 1; }
  void put_sums();
  void cut_sums(double longest_s);
  [[nodiscard]] PhasedChances coming(double seconds, int phase) const;
  [[nodiscard]] std::vector<double> before_own(double seconds, int phase) const;
  [[nodiscard]] Coming arrivals(const std::vector<double>& pass_s) const;
  [[nodiscard]] BandedChain chain_of(const Coming& come, double idle) const;
  [[nodiscard]] PhasedChances settled(const SolvedChain& chain) const;
  [[nodiscard]] PhasedChances stepped(const PhasedChances& at, const Coming& come) const;
  static constexpr double counted = 1e-10;  // chance of a state
  template <class At>
  void each_pass(const PhasedChances& at, At see) const {
    for (int phase = 0; phase < queue_.turns; ++phase) {
      const std::vector<double>& row = at.of(phase);
      for (int units = 0; units < units_; ++units) {
        if (row[static_cast<std::size_t>(units)] > counted) see(units, phase, row[static_cast<std::size_t>(units)]);
      }
    }
  }
  template <class At>
  void each_arrival(int moments, At see) const;
  [[nodiscard]] double whole_after_s(double rest_s, int units) const;
  [[nodiscard]] double begins_after_s(double rest_s, int before) const { return rest_s + before / queue_.most * queue_.pass_s.back(); }
  // Last passes of prompts: by the full passes from one's arrival to the beginning of it, and the units that it has room for behind it.
  using LastPasses = std::vector<std::vector<double>>;
  [[nodiscard]] LastPasses put_waits();
  [[nodiscard]] PhasedChances with_coming(const PhasedChances& at, const std::vector<PhasedChances>& come) const;
  [[nodiscard]] std::vector<PhasedChances> twice(const std::vector<PhasedChances>& come) const;
  void put_behind(const Coming& come, const LastPasses& last_passes);
  struct MeanPass {
    double seconds = 0, units = 0, there = 0;
  };
  [[nodiscard]] MeanPass mean_pass(const PhasedChances& at) const;
  void follow(const PhasedChances& always);
  void drain(const PhasedChances& always, const SolvedChain& chain);
  // Variances of the seconds of 1, 2, ... further tokens behind a prompt. Those behind the last one add as much each as that did.
  [[nodiscard]] std::vector<double> variances_of_mixed() const;
  [[nodiscard]] std::vector<double> variances_of_drained() const;
  [[nodiscard]] double of_ended(const std::vector<double>& ends, const PhasedChances& at, int column) const;

  int units_ = 0;                          // that are told apart: more are taken as so many
  int reach_ = 0;                          // units that come in a pass at most
  std::vector<std::vector<double>> sums_;  // of so many prompts: chances of their units
  PhasedChances met_, behind_, left_;
  Coming beside_;
  // From each state until no prompt is left: chances of the phases and the seconds, and the square of those (where prompts go first).
  std::vector<double> ends_, squares_;
};

}  // namespace rehearse::sim
