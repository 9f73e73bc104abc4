#include "sim/serving/pass_queue.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sim/serving/banded_chain.hpp"

namespace rehearse::sim {
namespace {

// Of prompts that wait n or more have the chance e^(-2 n (1 - load) / load), about (heavy traffic): of so many, 1e-8.
constexpr double waiting_at_half_load = 9, waiting_at_least = 4, waiting_at_most = 80;
constexpr int most_rounds = 2000;  // of the chain, until it settles
constexpr double settles_within = 1e-6;
constexpr double rest = 1e-9;        // of a Poisson number
constexpr double no_chance = 1e-13;  // of a state
constexpr int most_first_tokens = 200;
constexpr int passes_ahead = 12;
constexpr double nearly_all = 0.999;  // that a sum over those who come meanwhile is taken at

// Chances of 0, 1, ... of a Poisson number.
std::vector<double> poisson_chances(double mean) {
  constexpr double large = 500;  // beyond, those far below the mean have no chance that a number could say
  const int begin = mean < large ? 0 : static_cast<int>(mean - 10 * std::sqrt(mean));
  std::vector<double> out(static_cast<std::size_t>(begin), 0);
  double seen = 0, chance = begin == 0 ? std::exp(-mean) : std::exp(begin * std::log(mean) - mean - std::lgamma(begin + 1.0));
  for (int n = begin; seen < 1 - rest && n < 10 * (mean + 10); chance *= mean / ++n) {
    out.push_back(chance);
    seen += chance;
  }
  out.back() += 1 - seen;
  return out;
}

double mean_of(const std::vector<double>& chances, const std::vector<double>& values) {
  return std::inner_product(chances.begin(), chances.end(), values.begin(), 0.0);
}

void scale_to_one(std::vector<double>& chances) {
  const double sum = std::accumulate(chances.begin(), chances.end(), 0.0);
  for (double& chance : chances) chance /= sum;
}

}  // namespace

QueuedPasses::QueuedPasses(const PassQueue& queue, PassChances* known) : queue_(queue) {
  const double together = static_cast<double>(queue.most) / queue.units, load = queue.rate_per_s * queue.beside_s.back() / together;
  const double waiting = std::min(waiting_at_most, waiting_at_least + waiting_at_half_load * load / std::max(1e-3, 1 - load));
  rows_ = static_cast<int>(std::ceil(waiting * std::max(1.0, together)));
  const std::vector<Chances> come = arrivals(queue_.pass_s);
  beside_arrivals_ = arrivals(queue_.beside_s);
  Chances nobody(states(), 0);
  nobody[0] = 1;
  const bool begins = known == nullptr || known->met.empty();
  Chances met = settled(come, queue_.idle, begins ? nobody : resized(known->met, known->rows));
  Chances beside = settled(beside_arrivals_, 0, begins ? met : resized(known->beside, known->rows));
  if (known != nullptr) *known = {met, beside, rows_};
  meet(met, come, beside);
}

// Of a queue that looks at fewer or more waiting prompts, but cuts them alike; those beyond wait as the last ones do.
QueuedPasses::Chances QueuedPasses::resized(const Chances& known, int rows) const {
  Chances out(states(), 0);
  const int per_row = (rows + 1) * queue_.turns;
  for (int state = 0; state < static_cast<int>(known.size()); ++state) {
    const int row = std::min(state / per_row, queue_.units - 1), at = state % per_row;
    const int prompts = std::min(at / queue_.turns, rows_);
    out[static_cast<std::size_t>(row * row_states() + prompts * queue_.turns + at % queue_.turns)] +=
        known[static_cast<std::size_t>(state)];
  }
  scale_to_one(out);
  return out;
}

int QueuedPasses::begun(int units) const {
  const int rest_of_first = units % queue_.units, taken_now = taken(units);
  return rest_of_first == 0 ? prompts(taken_now) : 1 + prompts(std::max(0, taken_now - rest_of_first));
}

std::vector<QueuedPasses::Chances> QueuedPasses::arrivals(const std::vector<double>& pass_s) const {
  std::vector<Chances> out;
  for (const double seconds : pass_s) out.push_back(poisson_chances(queue_.rate_per_s * queue_.turns * seconds));
  return out;
}

// Calls at(state, chance) for where a pass leads.
template <class At>
void QueuedPasses::after(std::size_t state, const Chances& come, At at) const {
  const int units = there(state), first = state_of(units - taken(units), phase(state));
  const int end = (first / row_states() + 1) * row_states(), number = static_cast<int>(come.size()), fit = std::min(number, end - first);
  for (int n = 0; n < fit; ++n) at(static_cast<std::size_t>(first + n), come[static_cast<std::size_t>(n)]);
  for (int n = fit; n < number; ++n)
    at(static_cast<std::size_t>(end - queue_.turns + (first + n - end) % queue_.turns), come[static_cast<std::size_t>(n)]);
}

void QueuedPasses::pass_on(std::size_t state, double chance, const Chances& come, Chances& next) const {
  after(state, come, [&next, chance](std::size_t to, double one) { next[to] += chance * one; });
}

// The chances at the beginnings of passes and of spells without any: step by step from where another chain ended, and where that takes
// longer than to solve it, exactly.
QueuedPasses::Chances QueuedPasses::settled(const std::vector<Chances>& come, double idle, const Chances& begin) const {
  Chances now = begin, next;
  const auto first_prompt = static_cast<std::size_t>(state_of(queue_.units, 0));
  for (int round = 0; round < queue_.most * queue_.turns; ++round) {
    next.assign(states(), 0);
    for (std::size_t state = 0; state < states(); ++state) {
      if (now[state] < no_chance) continue;
      const int units = there(state);
      const double idles = units == 0 ? idle : 0;
      if (idles > 0) next[first_prompt] += idles * now[state];
      if (idles < 1) pass_on(state, (1 - idles) * now[state], come[static_cast<std::size_t>(taken(units))], next);
    }
    double change = 0;
    for (std::size_t state = 0; state < states(); ++state) change += std::abs(next[state] - now[state]);
    // Half of each: a chain may alternate.
    for (std::size_t state = 0; state < states(); ++state) now[state] = (now[state] + next[state]) / 2;
    if (change < settles_within) return now;
  }
  return solved(come, idle);
}

// By units, and of as many by arrivals.
QueuedPasses::Chances QueuedPasses::solved(const std::vector<Chances>& come, double idle) const {
  const auto place = [&](std::size_t state) { return there(state) * queue_.turns + phase(state); };
  std::size_t longest = 1;
  for (const Chances& one : come) longest = std::max(longest, one.size());
  const int prompts = (static_cast<int>(longest) + 2 * queue_.turns) / queue_.turns;
  BandedChain chain(static_cast<int>(states()), std::max(queue_.most, queue_.units) * queue_.turns, prompts * queue_.units * queue_.turns);
  for (std::size_t state = 0; state < states(); ++state) {
    const int units = there(state), from = place(state);
    const double idles = units == 0 ? idle : 0;
    if (idles > 0) chain.step(from, queue_.units * queue_.turns) += idles;
    after(state, come[static_cast<std::size_t>(taken(units))],
          [&](std::size_t to, double one) { chain.step(from, place(to)) += (1 - idles) * one; });
  }
  const Chances by_place = std::move(chain).settled();
  Chances out(states(), 0);
  for (std::size_t state = 0; state < states(); ++state) out[state] = by_place[static_cast<std::size_t>(place(state))];
  return out;
}

// Seconds that those who come during a pass are there before it ends, together; the last one came `phase` arrivals before it began. Of a
// Poisson process n are there by then for P(more than n) / rate.
double QueuedPasses::came_s(int phase, const Chances& come) const {
  double sum = 0, more = 1;
  for (std::size_t n = 0; n < come.size(); ++n) {
    more -= come[n];
    sum += std::max(0.0, more) * ((phase + static_cast<int>(n)) / queue_.turns);
  }
  return sum / (queue_.rate_per_s * queue_.turns);
}

// By Little: the prompts that are there, and those that have not begun, at any time.
void QueuedPasses::meet(const Chances& at, const std::vector<Chances>& come, const Chances& beside) {
  double time_s = 0, idle_s = 0, spells = 0, there_s = 0, waiting_s = 0;
  Chances behind(states(), 0);
  for (std::size_t state = 0; state < states(); ++state) {
    const int units = there(state);
    const double idles = units == 0 ? queue_.idle : 0, chance = at[state] * (1 - idles);
    const double apart_s = 1 / (queue_.rate_per_s * queue_.turns);
    idle_s += at[state] * idles * apart_s * (queue_.turns - phase(state));
    spells += at[state] * idles;
    if (chance <= 0) continue;
    const double seconds = queue_.pass_s[static_cast<std::size_t>(taken(units))];
    const double waits_s = came_s(phase(state), come[static_cast<std::size_t>(taken(units))]);
    time_s += chance * seconds;
    there_s += chance * (prompts(units) * seconds + waits_s);
    waiting_s += chance * ((prompts(units) - begun(units)) * seconds + waits_s);
    const int finished = prompts(units) - prompts(units - taken(units));
    if (finished > 0) pass_on(state, chance * finished, come[static_cast<std::size_t>(taken(units))], behind);
  }
  time_s += idle_s;
  queue_s_ = waiting_s / time_s / queue_.rate_per_s;
  prefill_s_ = there_s / time_s / queue_.rate_per_s - queue_s_;
  busy_ = 1 - idle_s / time_s;
  if (spells > 0) idle_each_s_ = idle_s / spells;
  scale_to_one(behind);
  for (std::size_t state = 0; state < states(); ++state) joining_ += behind[state] * prompts(there(state));
  joining_ /= 1 - std::min(nearly_all, queue_.rate_per_s * queue_.beside_s.back() * queue_.units / queue_.most);
  if (queue_.mixes)
    follow(std::move(behind), beside);
  else
    drain(behind, beside);
}

// Every pass brings a token: the first ones are as long as what came with the prompt says.
void QueuedPasses::follow(Chances at, const Chances& always) {
  std::vector<double> pass_s(states());
  for (std::size_t state = 0; state < states(); ++state) pass_s[state] = queue_.beside_s[static_cast<std::size_t>(taken(there(state)))];
  token_s_ = mean_of(always, pass_s);
  Chances next;
  double sum_s = 0;
  while (first_tokens_s_.size() < most_first_tokens) {
    const double seconds = mean_of(at, pass_s);
    first_tokens_s_.push_back(sum_s += seconds);
    if (std::abs(seconds - token_s_) < settles_within * token_s_) return;
    next.assign(states(), 0);
    for (std::size_t state = 0; state < states(); ++state) {
      if (at[state] > no_chance) pass_on(state, at[state], beside_arrivals_[static_cast<std::size_t>(taken(there(state)))], next);
    }
    at.swap(next);
  }
}

// Passes with prompts go first: tokens come when none is left.
void QueuedPasses::drain(const Chances& at, const Chances& always) {
  const Chances drained_s = until_drained_s();
  double all_s = 0, decoding = 0;
  for (std::size_t state = 0; state < states(); ++state) {
    all_s += always[state] * queue_.beside_s[static_cast<std::size_t>(taken(there(state)))];
    if (there(state) == 0) decoding += always[state];
  }
  token_s_ = all_s / decoding;
  // Behind the last token nobody waits for prompts that came with it.
  first_tokens_s_ = {mean_of(at, drained_s) + queue_.beside_s[0]};
  if (queue_.turns > 1) spare_first_tokens(at, drained_s);
}

// From a state until no prompt is left. Far from there a unit more takes its share of a full pass, with those that come meanwhile: so many
// passes ahead it is added, where a chain over all states would be long.
QueuedPasses::Chances QueuedPasses::until_drained_s() const {
  const double full_s = queue_.beside_s.back(), load = queue_.rate_per_s * full_s * queue_.units / queue_.most;
  const double unit_s = full_s / queue_.most / (1 - std::min(nearly_all, load));
  Chances drained_s(states());
  for (std::size_t state = 0; state < states(); ++state) drained_s[state] = there(state) * unit_s;
  for (int round = 0; round < most_rounds; ++round) {
    double change = 0;
    for (std::size_t state = 0; state < states(); ++state) {
      const int units = there(state);
      if (units == 0) continue;
      if (units > passes_ahead * queue_.most) {
        drained_s[state] = drained_s[static_cast<std::size_t>(state_of(units - queue_.most, phase(state)))] + queue_.most * unit_s;
        continue;
      }
      double sum = queue_.beside_s[static_cast<std::size_t>(taken(units))];
      after(state, beside_arrivals_[static_cast<std::size_t>(taken(units))],
            [&](std::size_t to, double one) { sum += one * drained_s[to]; });
      change = std::max(change, std::abs(sum - drained_s[state]) / sum);
      drained_s[state] = sum;
    }
    if (change < settles_within) break;
  }
  return drained_s;
}

// Where prompts that are there lead to, with those that come meanwhile: by arrivals since the last one here, when none is left.
QueuedPasses::Chances QueuedPasses::drained_to(Chances at) const {
  Chances phases(static_cast<std::size_t>(queue_.turns), 0), next;
  double left = 1;
  for (int round = 0; round < most_rounds && left > rest; ++round) {
    next.assign(states(), 0);
    left = 0;
    for (std::size_t state = 0; state < states(); ++state) {
      if (at[state] < no_chance) continue;
      const int units = there(state);
      if (units == 0) {
        phases[static_cast<std::size_t>(phase(state))] += at[state];
        continue;
      }
      left += at[state];
      pass_on(state, at[state], beside_arrivals_[static_cast<std::size_t>(taken(units))], next);
    }
    at.swap(next);
  }
  scale_to_one(phases);
  return phases;
}

// Where instances take turns the next prompts behind one's own go elsewhere, so that the first tokens are shorter than the later ones.
void QueuedPasses::spare_first_tokens(const Chances& at, const Chances& drained_s) {
  const auto turns = static_cast<std::size_t>(queue_.turns);
  std::vector<double> seconds_at(turns);
  std::vector<Chances> leads;
  for (std::size_t phase = 0; phase < turns; ++phase) {
    Chances next(states(), 0);
    pass_on(static_cast<std::size_t>(state_of(0, static_cast<int>(phase))), 1, beside_arrivals_[0], next);
    seconds_at[phase] = mean_of(next, drained_s) + queue_.beside_s[0];
    leads.push_back(drained_to(std::move(next)));
  }
  Chances phases = drained_to(at);
  while (first_tokens_s_.size() < most_first_tokens) {
    const double seconds = mean_of(phases, seconds_at);
    if (std::abs(seconds - token_s_) < settles_within * token_s_) return;
    first_tokens_s_.push_back(first_tokens_s_.back() + seconds);
    Chances next(turns, 0);
    for (std::size_t from = 0; from < turns; ++from) {
      for (std::size_t to = 0; to < turns; ++to) next[to] += phases[from] * leads[from][to];
    }
    phases.swap(next);
  }
}

double QueuedPasses::tokens_s(double tokens) const {
  const auto known = static_cast<double>(first_tokens_s_.size());
  if (tokens >= known) return first_tokens_s_.back() + (tokens - known) * token_s_;
  const auto whole = static_cast<std::size_t>(tokens);
  const double low = whole > 0 ? first_tokens_s_[whole - 1] : 0;
  return low + (tokens - static_cast<double>(whole)) * (first_tokens_s_[whole] - low);
}

}  // namespace rehearse::sim
