// Prompts at one instance by formula: who waits at the beginning of a pass is a Markov chain, since a pass takes as many as fit and
// is as long as what it takes says. Passes without prompts decode, or nobody decodes and the instance idles until the next prompt.
#pragma once

#include <vector>

#include "sim/serving/banded_chain.hpp"

namespace rehearse::sim {

struct PassQueue {
  double rate_per_s = 0;     // of arrivals here
  int turns = 1;             // this instance gets every so manieth of arrivals at random
  int units = 1;             // that a prompt is cut into
  int most = 1;              // of them in a pass
  double idle = 1;           // chance that nobody decodes when a pass has ended and no prompt is there
  bool mixes = true;         // sequences decode in passes with prompts too
  double most_tokens = 1e9;  // of an answer: more are not asked about
  double within = 1e-7;      // the chances of instances that take turns: the sum of their errors
  bool ahead = false;        // first_ahead_s() is asked for
  double states = 800;       // that are told apart at most, of unlike prompts
  // Chances that a prompt is so many units, from 0 on, and their mean; none: all are `units`.
  std::vector<double> sizes;
  double mean_units = 1;
  // A pass with so many units, 0 to `most`: as prompts meet it, and as a sequence does that decodes
  // (empty: none does here).
  std::vector<double> pass_s, beside_s;
};

// Chances at the beginnings of passes, of a queue that is much like one to be looked at: where its chain begins.
struct PassChances {
  std::vector<double> met, beside;
  int rows = 0;
  std::vector<double> with_prompts_s, ends;  // passes, and what prompts come to in them (empty: not asked yet)
};

// Of first, first + 1, ...; those of other numbers are hardly any.
struct PoissonChances {
  int first = 0;
  std::vector<double> chances;
  [[nodiscard]] std::size_t end() const { return static_cast<std::size_t>(first) + chances.size(); }
};

// What prompts meet, and sequences behind them.
class PromptPasses {
 public:
  [[nodiscard]] double queue_s() const { return queue_s_; }      // until the first pass with the prompt begins
  [[nodiscard]] double prefill_s() const { return prefill_s_; }  // from there to the end of its last one
  [[nodiscard]] double busy() const { return busy_; }            // share of the time
  // Prompts that are there when one is whole, and those that come until none is: they begin to decode with it, or a little later.
  [[nodiscard]] double joining() const { return joining_; }
  [[nodiscard]] double token_s() const { return token_s_; }          // a further token late in an answer
  [[nodiscard]] double idle_each_s() const { return idle_each_s_; }  // a spell without a pass; 0: none
  // So many further tokens of a sequence, from the end of its prompt on.
  [[nodiscard]] double tokens_s(double tokens) const;
  // The first of them where passes are put together ahead: who came during its prompt's last pass is not in the one behind.
  [[nodiscard]] double first_ahead_s() const { return first_ahead_s_; }
  // Of this instance, that a sequence of so many further tokens sees beside it, as a mean over its passes.
  [[nodiscard]] double sequences_beside(double tokens) const;
  // From its arrival until a prompt is whole: that share of them take no longer.
  [[nodiscard]] virtual double first_token_within_s(double share) const = 0;
  // Of answers of so many further tokens, that take so long on average: the variances of that which prompts beside them make.
  [[nodiscard]] virtual std::vector<double> variances(const std::vector<double>& tokens, const std::vector<double>& answers_s) const = 0;
  // That one prompt more makes an answer longer, with those that come in that time.
  [[nodiscard]] double by_prompt_s() const;
  virtual ~PromptPasses() = default;

 protected:
  explicit PromptPasses(const PassQueue& queue) : queue_(queue) {}
  static constexpr double no_chance = 1e-13;     // of a state
  static constexpr int most_first_tokens = 200;  // that are told apart
  static constexpr double token_settles_within = 1e-6;
  static constexpr double nearly_all = 0.999;  // that a sum over those who come meanwhile is taken at
  [[nodiscard]] int taken(int units) const { return units < queue_.most ? units : queue_.most; }

  const PassQueue& queue_;
  double queue_s_ = 0, prefill_s_ = 0, busy_ = 0, idle_each_s_ = 0, joining_ = 0;
  std::vector<double> first_tokens_s_;  // so many, one more each
  double token_s_ = 0;                  // each behind them
  double with_it_ = 0;                  // other prompts that are whole with one
  std::vector<double> join_;            // that are in so many passes behind it
  double first_ahead_s_ = 0;
};

// Equal prompts.
class QueuedPasses : public PromptPasses {
 public:
  explicit QueuedPasses(const PassQueue& queue) : QueuedPasses(queue, nullptr) {}
  // From where another one ended; this one's are left there.
  QueuedPasses(const PassQueue& queue, PassChances* known);
  [[nodiscard]] double first_token_within_s(double share) const override;
  [[nodiscard]] std::vector<double> variances(const std::vector<double>& tokens, const std::vector<double>& answers_s) const override;

 private:
  // By state: units that are there, and arrivals since the last one here. Those with as much left of a prompt are a row, by prompts and
  // then by arrivals, so that what comes moves along it.
  using Chances = std::vector<double>;
  [[nodiscard]] int row_states() const { return (rows_ + 1) * queue_.turns; }
  [[nodiscard]] std::size_t states() const { return static_cast<std::size_t>(row_states()) * static_cast<std::size_t>(queue_.units); }
  // What a state is, and where the pass from there would lead did nobody come.
  struct Place {
    int units = 0, lands = 0, row_end = 0;
  };
  [[nodiscard]] std::vector<Place> places() const;
  [[nodiscard]] int there(std::size_t state) const { return places_[state].units; }
  [[nodiscard]] int phase(std::size_t state) const { return static_cast<int>(state) % queue_.turns; }
  [[nodiscard]] int state_of(int units, int phase) const {
    return units % queue_.units * row_states() + units / queue_.units * queue_.turns + phase;
  }
  [[nodiscard]] int place(std::size_t state) const { return there(state) * queue_.turns + phase(state); }
  // Until no prompt is left: by arrivals since the last one here at the end, those that are not there yet, and the time of the passes.
  struct Drained {
    Chances phases;
    double left = 0, seconds = 0;
    void add(const Drained& other, double ended, double passed) {
      for (std::size_t phase = 0; phase < phases.size(); ++phase) phases[phase] += ended * other.phases[phase];
      seconds += passed * other.seconds;
    }
  };
  struct Reach {
    int first, end, fit, number;  // a state, that behind its row's last one, and how many of so many lie between
  };
  [[nodiscard]] Reach reach(std::size_t state, const PoissonChances& come) const;
  template <class At>
  void beyond_end(const Reach& to, const PoissonChances& come, At at) const;
  template <class At>
  void after(std::size_t state, const PoissonChances& come, At at) const;
  [[nodiscard]] int prompts(int units) const { return (units + queue_.units - 1) / queue_.units; }
  [[nodiscard]] int begun(int units) const;  // prompts that a pass has something of
  [[nodiscard]] std::vector<double> came_s(const PoissonChances& come) const;
  [[nodiscard]] std::vector<PoissonChances> arrivals(const std::vector<double>& pass_s) const;
  void pass_on(std::size_t state, double chance, const PoissonChances& come, Chances& next) const;
  void step(const Chances& now, const std::vector<PoissonChances>& come, double idle, Chances& next) const;
  [[nodiscard]] Chances settled(const std::vector<PoissonChances>& come, double idle, Chances now) const;
  // By units of a pass and arrivals since the last one here before it: chances that first, first + 1, ... prompts come in it, from where
  // those of the one before end.
  struct ComingPrompts {
    std::vector<int> first;
    std::vector<std::size_t> end;
    std::vector<double> chances;
  };
  [[nodiscard]] ComingPrompts prompts_coming(const std::vector<PoissonChances>& come) const;
  [[nodiscard]] Chances balanced(Chances at, const ComingPrompts& coming, double idle) const;
  [[nodiscard]] BandedChain chain_of(const std::vector<PoissonChances>& come, double idle, bool ends) const;
  [[nodiscard]] Chances solved_ends() const;
  [[nodiscard]] Chances solved(const std::vector<PoissonChances>& come, double idle) const;
  [[nodiscard]] Chances resized(const Chances& known, int rows) const;
  [[nodiscard]] Chances meet(const Chances& at, const std::vector<PoissonChances>& come);
  [[nodiscard]] double whole_after_s(double rest_s, int before) const;
  void follow(Chances at, const Chances& always);
  void drain(const Chances& at, const Chances& always);
  [[nodiscard]] Drained drain_once(const Chances& at, Chances& next) const;
  [[nodiscard]] Drained drained(Chances at);
  [[nodiscard]] Drained add_solved(Drained sum, const Chances& at);
  void spare_first_tokens(Chances phases);

  int rows_ = 0;  // whole prompts: more are taken as so many
  std::vector<Place> places_;
  std::vector<PoissonChances> beside_arrivals_;
  Chances met_;   // at the beginning of passes, as prompts meet them
  Chances ends_;  // solved_ends, once it is needed
  Chances left_;  // behind a prompt, where others were there before its last pass that did not fit into it
  double left_share_ = 0;
};

}  // namespace rehearse::sim
