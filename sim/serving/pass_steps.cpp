// Where passes lead, and the chances that they settle at.
#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/serving/pass_queue.hpp"
#include "sim/serving/scaled_sums.hpp"

namespace rehearse::sim {
namespace {

constexpr double settles_within = 1e-6;

double difference(const std::vector<double>& one, const std::vector<double>& other) {
  double sum = 0;
  for (std::size_t at = 0; at < one.size(); ++at) sum += std::abs(one[at] - other[at]);
  return sum;
}

// A fixed point of many numbers: where the last two steps lead to were they straight (Anderson). No chance falls below 0.
class StraightOn {
 public:
  [[nodiscard]] std::vector<double> after(const std::vector<double>& from, std::vector<double> to) {
    std::vector<double> change(from.size()), led = to;
    double bent = 0, along = 0;
    for (std::size_t at = 0; at < from.size(); ++at) {
      change[at] = to[at] - from[at];
      const double bend = change_.empty() ? 0 : change[at] - change_[at];
      bent += bend * bend;
      along += bend * change[at];
    }
    for (std::size_t at = 0; bent > 0 && at < from.size(); ++at) led[at] = std::max(0.0, to[at] - along / bent * (to[at] - to_[at]));
    change_ = std::move(change);
    to_ = std::move(to);
    return led;
  }

 private:
  std::vector<double> change_, to_;
};

}  // namespace

std::vector<QueuedPasses::Place> QueuedPasses::places() const {
  std::vector<Place> out;
  for (int row = 0; row < queue_.units; ++row) {
    for (int at = 0; at < row_states(); ++at) {
      const int units = at / queue_.turns * queue_.units + row, lands = state_of(units - taken(units), at % queue_.turns);
      out.push_back({units, lands, (lands / row_states() + 1) * row_states()});
    }
  }
  return out;
}

// Where a pass leads: to `fit` states from `first` on, and round the end of the row.
QueuedPasses::Reach QueuedPasses::reach(std::size_t state, const PoissonChances& come) const {
  const Place& from = places_[state];
  const int first = from.lands + come.first, number = static_cast<int>(come.chances.size());
  return {first, from.row_end, std::clamp(from.row_end - first, 0, number), number};
}

// Calls at(state, chance) for those round the end.
template <class At>
void QueuedPasses::beyond_end(const Reach& to, const PoissonChances& come, At at) const {
  for (int n = to.fit; n < to.number; ++n)
    at(static_cast<std::size_t>(to.end - queue_.turns + (to.first + n - to.end) % queue_.turns), come.chances[static_cast<std::size_t>(n)]);
}

// ... for all.
template <class At>
void QueuedPasses::after(std::size_t state, const PoissonChances& come, At at) const {
  const Reach to = reach(state, come);
  for (int n = 0; n < to.fit; ++n) at(static_cast<std::size_t>(to.first + n), come.chances[static_cast<std::size_t>(n)]);
  beyond_end(to, come, at);
}

void QueuedPasses::pass_on(std::size_t state, double chance, const PoissonChances& come, Chances& next) const {
  const Reach to = reach(state, come);
  if (to.fit > 0) add_scaled(next.data() + to.first, come.chances.data(), chance, to.fit);
  beyond_end(to, come, [&](std::size_t s, double of) { next[s] += chance * of; });
}

// From the beginnings of passes, and of spells without any, to those of the next ones.
void QueuedPasses::step(const Chances& now, const std::vector<PoissonChances>& come, double idle, Chances& next) const {
  const auto first_prompt = static_cast<std::size_t>(state_of(queue_.units, 0));
  next.assign(states(), 0);
  for (std::size_t state = 0; state < states(); ++state) {
    if (now[state] < no_chance) continue;
    const int units = there(state);
    const double idles = units == 0 ? idle : 0;
    if (idles > 0) next[first_prompt] += idles * now[state];
    if (idles < 1) pass_on(state, (1 - idles) * now[state], come[static_cast<std::size_t>(taken(units))], next);
  }
}

// The chances at the beginnings of passes and of spells without any: step by step from where another chain ended, and where that takes
// longer than to solve it, exactly.
QueuedPasses::Chances QueuedPasses::settled(const std::vector<PoissonChances>& come, double idle, Chances now) const {
  Chances next;
  ComingPrompts coming;
  StraightOn straight;
  for (int round = 0; round < queue_.most * queue_.turns; ++round) {
    step(now, come, idle, next);
    const double change = difference(now, next);
    if (queue_.turns > 1) {
      if (change < queue_.within) return next;
      if (round == 0) coming = prompts_coming(come);
      now = straight.after(now, balanced(next, coming, idle));
      continue;
    }
    // Half of each: a chain may alternate.
    for (std::size_t state = 0; state < states(); ++state) now[state] = (now[state] + next[state]) / 2;
    if (change < settles_within) return now;
  }
  return solved(come, idle);
}

QueuedPasses::ComingPrompts QueuedPasses::prompts_coming(const std::vector<PoissonChances>& come) const {
  const auto turns = static_cast<std::size_t>(queue_.turns);
  ComingPrompts out{{}, {0}, {}};
  std::vector<double> up_to;
  for (const PoissonChances& one : come) {
    const std::size_t number = one.chances.size();
    up_to.assign(1, 0);
    for (const double chance : one.chances) up_to.push_back(up_to.back() + chance);
    for (std::size_t phase = 0; phase < turns; ++phase) {
      const std::size_t first = static_cast<std::size_t>(one.first) + phase;
      out.first.push_back(static_cast<int>(first / turns));
      for (std::size_t n = 0, next = turns - first % turns; n < number; n = next, next += turns)
        out.chances.push_back(up_to[std::min(next, number)] - up_to[n]);
      out.end.push_back(out.chances.size());
    }
  }
  return out;
}

// Where instances take turns the slow thing is how many units are there. They are a chain of their own, where of so many units each number
// of arrivals since the last one here keeps its share: that is solved exactly, and the shares are left to the steps (Takahashi 1975).
QueuedPasses::Chances QueuedPasses::balanced(Chances at, const ComingPrompts& coming, double idle) const {
  const int all = (rows_ + 1) * queue_.units;
  int most = 1;
  for (std::size_t pass = 0; pass < coming.first.size(); ++pass)
    most = std::max(most, coming.first[pass] + static_cast<int>(coming.end[pass + 1] - coming.end[pass]));
  BandedChain chain(all, std::max(queue_.most, queue_.units), most * queue_.units);
  for (int units = 0; units < all; ++units) {
    double sum = 0;
    for (int phase = 0; phase < queue_.turns; ++phase) sum += at[static_cast<std::size_t>(state_of(units, phase))];
    const double idles = units == 0 ? idle : 0;
    if (idles > 0) chain.step(0, queue_.units) += idles;
    const int left = units - taken(units);
    for (int phase = 0; phase < queue_.turns; ++phase) {
      double& share = at[static_cast<std::size_t>(state_of(units, phase))];
      share = sum > 0 ? share / sum : 1.0 / queue_.turns;
      const auto pass = static_cast<std::size_t>(taken(units) * queue_.turns + phase);
      int prompts = left / queue_.units + coming.first[pass];
      for (std::size_t n = coming.end[pass]; n < coming.end[pass + 1]; ++n)
        chain.step(units, left % queue_.units + std::min(prompts++, rows_) * queue_.units) += (1 - idles) * share * coming.chances[n];
    }
  }
  const std::vector<double> by_units = SolvedChain(std::move(chain)).settled();
  for (std::size_t state = 0; state < states(); ++state) at[state] *= by_units[static_cast<std::size_t>(there(state))];
  return at;
}

// By units, and of as many by arrivals; from where nobody is left no step leads on where that is the end.
BandedChain QueuedPasses::chain_of(const std::vector<PoissonChances>& come, double idle, bool ends) const {
  int down = 1, up = queue_.units * queue_.turns;
  for (std::size_t state = 0; state < states(); ++state) {
    const Reach to = reach(state, come[static_cast<std::size_t>(taken(there(state)))]);
    const int low = std::min(to.first, to.end - queue_.turns), high = std::min(to.first + to.number, to.end) - 1;
    down = std::max(down, place(state) - place(static_cast<std::size_t>(low)));
    up = std::max(up, place(static_cast<std::size_t>(std::max(low, high))) - place(state));
  }
  BandedChain chain(static_cast<int>(states()), down, up);
  for (std::size_t state = 0; state < states(); ++state) {
    const int units = there(state), from = place(state);
    if (units == 0 && ends) continue;
    const double idles = units == 0 ? idle : 0;
    if (idles > 0) chain.step(from, queue_.units * queue_.turns) += idles;
    after(state, come[static_cast<std::size_t>(taken(units))],
          [&](std::size_t to, double one) { chain.step(from, place(to)) += (1 - idles) * one; });
  }
  return chain;
}

QueuedPasses::Chances QueuedPasses::solved(const std::vector<PoissonChances>& come, double idle) const {
  const Chances by_place = SolvedChain(chain_of(come, idle, false)).settled();
  Chances out(states(), 0);
  for (std::size_t state = 0; state < states(); ++state) out[state] = by_place[static_cast<std::size_t>(place(state))];
  return out;
}

}  // namespace rehearse::sim
