#include "sim/serving/pass_queue.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace rehearse::sim {
namespace {

// Of prompts that wait n or more have the chance e^(-2 n (1 - load) / load), about (heavy traffic): of so many, 1e-8.
constexpr double waiting_at_half_load = 9, waiting_at_least = 4, waiting_at_most = 80;
constexpr int most_rounds = 2000;  // of the chain, until it settles
constexpr double settles_within = 1e-6;
constexpr double rest = 1e-9;  // of a Poisson number
constexpr int most_first_tokens = 200;

// Chances of 0, 1, ... of a Poisson number.
std::vector<double> poisson_chances(double mean) {
  std::vector<double> out;
  double chance = std::exp(-mean), seen = 0;
  for (int n = 0; seen < 1 - rest && n < 10 * (mean + 10); chance *= mean / ++n) {
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

QueuedPasses::QueuedPasses(const PassQueue& queue) : queue_(queue) {
  const double together = static_cast<double>(queue.most) / queue.units, load = queue.rate_per_s * queue.beside_s.back() / together;
  const double waiting = std::min(waiting_at_most, waiting_at_least + waiting_at_half_load * load / std::max(1e-3, 1 - load));
  last_ = static_cast<int>(std::ceil(waiting * std::max(1.0, together))) * queue.units;
  const std::vector<Chances> come = arrivals(queue_.pass_s);
  beside_arrivals_ = arrivals(queue_.beside_s);
  meet(settled(come, queue_.idle), come);
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

void QueuedPasses::pass_on(std::size_t state, double chance, const Chances& come, Chances& next) const {
  const int units = there(state), left = units - taken(units);
  int phase = static_cast<int>(state) % queue_.turns, at = left;
  for (const double one : come) {
    next[static_cast<std::size_t>(std::min(at, last_) * queue_.turns + phase)] += chance * one;
    if (++phase == queue_.turns) {
      phase = 0;
      at += queue_.units;
    }
  }
}

// The chances at the beginnings of passes and of spells without any.
QueuedPasses::Chances QueuedPasses::settled(const std::vector<Chances>& come, double idle) const {
  Chances now(states(), 0), next;
  now[0] = 1;
  for (int round = 0; round < most_rounds; ++round) {
    next.assign(states(), 0);
    for (std::size_t state = 0; state < states(); ++state) {
      if (now[state] < rest * settles_within) continue;
      const int units = there(state);
      const double idles = units == 0 ? idle : 0;
      if (idles > 0) next[static_cast<std::size_t>(queue_.units * queue_.turns)] += idles * now[state];
      if (idles < 1) pass_on(state, (1 - idles) * now[state], come[static_cast<std::size_t>(taken(units))], next);
    }
    double change = 0;
    for (std::size_t state = 0; state < states(); ++state) change += std::abs(next[state] - now[state]);
    // Half of each: a chain may alternate.
    for (std::size_t state = 0; state < states(); ++state) now[state] = (now[state] + next[state]) / 2;
    if (change < settles_within) break;
  }
  return now;
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
void QueuedPasses::meet(const Chances& at, const std::vector<Chances>& come) {
  double time_s = 0, idle_s = 0, spells = 0, there_s = 0, waiting_s = 0;
  Chances behind(states(), 0);
  for (std::size_t state = 0; state < states(); ++state) {
    const int units = there(state);
    const double idles = units == 0 ? queue_.idle : 0, chance = at[state] * (1 - idles);
    const double apart_s = 1 / (queue_.rate_per_s * queue_.turns);
    idle_s += at[state] * idles * apart_s * (queue_.turns - static_cast<int>(state) % queue_.turns);
    spells += at[state] * idles;
    if (chance <= 0) continue;
    const double seconds = queue_.pass_s[static_cast<std::size_t>(taken(units))];
    const double waits_s = came_s(static_cast<int>(state) % queue_.turns, come[static_cast<std::size_t>(taken(units))]);
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
  if (queue_.mixes)
    follow(std::move(behind));
  else
    drain(behind, settled(beside_arrivals_, 0));
}

// Every pass brings a token: the first ones are as long as what came with the prompt says.
void QueuedPasses::follow(Chances at) {
  std::vector<double> pass_s(states());
  for (std::size_t state = 0; state < states(); ++state) pass_s[state] = queue_.beside_s[static_cast<std::size_t>(taken(there(state)))];
  token_s_ = mean_of(settled(beside_arrivals_, 0), pass_s);
  Chances next;
  double sum_s = 0;
  while (first_tokens_s_.size() < most_first_tokens) {
    const double seconds = mean_of(at, pass_s);
    first_tokens_s_.push_back(sum_s += seconds);
    if (std::abs(seconds - token_s_) < settles_within * token_s_) return;
    next.assign(states(), 0);
    for (std::size_t state = 0; state < states(); ++state) {
      if (at[state] > rest * settles_within)
        pass_on(state, at[state], beside_arrivals_[static_cast<std::size_t>(taken(there(state)))], next);
    }
    at.swap(next);
  }
}

// Passes with prompts go first: tokens come when none is left.
void QueuedPasses::drain(const Chances& at, const Chances& always) {
  std::vector<double> drained_s(states(), 0);
  for (int round = 0; round < most_rounds; ++round) {
    double change = 0;
    for (std::size_t state = static_cast<std::size_t>(queue_.turns); state < states(); ++state) {
      const int units = there(state), left = units - taken(units);
      double sum = queue_.beside_s[static_cast<std::size_t>(taken(units))];
      int phase = static_cast<int>(state) % queue_.turns, to = left;
      for (const double one : beside_arrivals_[static_cast<std::size_t>(taken(units))]) {
        sum += one * drained_s[static_cast<std::size_t>(std::min(to, last_) * queue_.turns + phase)];
        if (++phase == queue_.turns) {
          phase = 0;
          to += queue_.units;
        }
      }
      change = std::max(change, std::abs(sum - drained_s[state]) / sum);
      drained_s[state] = sum;
    }
    if (change < settles_within) break;
  }
  double all_s = 0, decoding = 0;
  for (std::size_t state = 0; state < states(); ++state) {
    all_s += always[state] * queue_.beside_s[static_cast<std::size_t>(taken(there(state)))];
    if (there(state) == 0) decoding += always[state];
  }
  token_s_ = all_s / decoding;
  // Behind the last token nobody waits for prompts that came with it.
  first_tokens_s_ = {mean_of(at, drained_s) + queue_.beside_s[0]};
}

double QueuedPasses::tokens_s(double tokens) const {
  const auto known = static_cast<double>(first_tokens_s_.size());
  if (tokens >= known) return first_tokens_s_.back() + (tokens - known) * token_s_;
  const auto whole = static_cast<std::size_t>(tokens);
  const double low = whole > 0 ? first_tokens_s_[whole - 1] : 0;
  return low + (tokens - static_cast<double>(whole)) * (first_tokens_s_[whole] - low);
}

}  // namespace rehearse::sim
