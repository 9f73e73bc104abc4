#include "sim/serving/unlike_passes.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sim/serving/scaled_sums.hpp"

namespace rehearse::sim {
namespace {

constexpr double tail_of_waits = 9;          // of a wait whose tail is exponential: more than so many means have a chance of 1e-4
constexpr double hardly_ever_behind = 1e-6;  // chance of what comes behind a prompt
constexpr std::size_t times_one_by_one = 8, times_of_a_step = 2;  // passes that a prompt takes: further ones by steps, each twice as long
constexpr double arrivals_left = 1e-5;                            // chance of more in a pass than are counted
constexpr double units_left = 1e-6;                               // ... of units of so many

// From the so manieth of the times that are told apart to the next one.
int length_of_step(std::size_t number) { return number < times_one_by_one ? 1 : 2 << ((number - times_one_by_one) / times_of_a_step); }

// At those times alone: what lies between two of them is at both, so that its mean stays.
std::vector<std::vector<double>> at_steps(const std::vector<std::vector<double>>& times) {
  const std::vector<double> none(times.front().size(), 0);
  std::vector<std::vector<double>> out{none};
  for (std::size_t from = 0; from < times.size();) {
    const auto length = static_cast<std::size_t>(length_of_step(out.size() - 1));
    out.push_back(none);
    for (std::size_t i = 0; i < length && from + i < times.size(); ++i) {
      const double share = static_cast<double>(i) / static_cast<double>(length);
      for (std::size_t room = 0; room < none.size(); ++room) {
        out[out.size() - 2][room] += times[from + i][room] * (1 - share);
        out.back()[room] += times[from + i][room] * share;
      }
    }
    from += length;
  }
  return out;
}

}  // namespace

double PhasedChances::sum() const {
  double all = 0;
  for (const auto& one : chances_) all = std::accumulate(one.begin(), one.end(), all);
  return all;
}

void PhasedChances::scale(double by) {
  for (auto& one : chances_) {
    for (double& chance : one) chance *= by;
  }
}

// In heavy traffic a wait is exponential with the mean of Pollaczek and Khinchine.
UnlikePasses::UnlikePasses(const PassQueue& queue) : PromptPasses(queue) {
  const double full_s = std::max(queue.pass_s.back(), queue.beside_s.back());
  const double load = std::min(nearly_all, queue.rate_per_s * queue.mean_units * full_s / queue.most);
  double squares = 0;
  for (std::size_t i = 0; i < queue.sizes.size(); ++i) squares += queue.sizes[i] * static_cast<double>(i * i);
  const double variation = squares / (queue.mean_units * queue.mean_units) - 1 + 1.0 / queue.turns;
  const double waiting = variation * queue.mean_units / 2 * load / (1 - load);
  const int least = queue.most + static_cast<int>(queue.sizes.size());
  units_ = std::max(least, static_cast<int>(std::min(queue.states / queue.turns, least + tail_of_waits * waiting)));
  put_sums();
  const Coming come = arrivals(queue.pass_s);
  met_ = settled(SolvedChain(chain_of(come, queue.idle)));
  put_behind(come, put_waits());
  beside_ = arrivals(queue.beside_s);
  const SolvedChain chain(chain_of(beside_, 0));
  const PhasedChances always = settled(chain);
  joining_ /= 1 - load;
  if (queue.mixes)
    follow(always);
  else
    drain(always, chain);
}

// Until so many prompts hardly ever come in a pass.
void UnlikePasses::put_sums() {
  const double longest_s = std::max(*std::max_element(queue_.pass_s.begin(), queue_.pass_s.end()),
                                    *std::max_element(queue_.beside_s.begin(), queue_.beside_s.end()));
  const double mean = queue_.rate_per_s * longest_s;
  double chance = std::exp(-mean), more = 1 - chance;
  sums_.push_back({1});
  for (int n = 1; n == 1 || more > arrivals_left; ++n) {
    chance *= mean / n;
    more -= chance;
    const std::vector<double>& before = sums_.back();
    std::vector<double> next(std::min(before.size() + queue_.sizes.size() - 1, static_cast<std::size_t>(units_)), 0);
    for (std::size_t i = 0; i < before.size(); ++i) {
      const std::size_t number = std::min(queue_.sizes.size(), next.size() - std::min(i, next.size()));
      add_scaled(next.data() + i, queue_.sizes.data(), before[i], static_cast<int>(number));
    }
    sums_.push_back(std::move(next));
    if (n > mean + 10 * (std::sqrt(mean) + 1)) break;
  }
  reach_ = static_cast<int>(sums_.back().size());
  cut_sums(longest_s);
}

// From where units hardly ever come in the longest pass: of prompts that are all among the longest ones.
void UnlikePasses::cut_sums(double longest_s) {
  const PhasedChances most = coming(longest_s, queue_.turns - 1);
  const auto chance = [&](int units) {
    double sum = 0;
    for (int phase = 0; phase < queue_.turns; ++phase) sum += most.of(phase)[static_cast<std::size_t>(units)];
    return sum;
  };
  double more = 0;
  while (reach_ > 1 && (more += chance(reach_ - 1)) < units_left) --reach_;
  for (std::vector<double>& one : sums_) one.resize(std::min(one.size(), static_cast<std::size_t>(reach_)));
}

// Of all that come in so long, at `turns` instances, every turns-th comes here.
PhasedChances UnlikePasses::coming(double seconds, int phase) const {
  PhasedChances out(queue_.turns, reach_);
  const double mean = queue_.rate_per_s * queue_.turns * seconds;
  const int most = static_cast<int>(sums_.size() - 1) * queue_.turns + queue_.turns - 1;
  double chance = std::exp(-mean);
  for (int n = 0; n + phase <= most; chance *= mean / ++n) {
    const std::vector<double>& sum = sums_[static_cast<std::size_t>((n + phase) / queue_.turns)];
    add_scaled(out.of((n + phase) % queue_.turns).data(), sum.data(), chance, static_cast<int>(sum.size()));
  }
  out.scale(1 / out.sum());
  return out;
}

// Units that come in so long before one's own prompt: chances of them and of an arrival here then.
std::vector<double> UnlikePasses::before_own(double seconds, int phase) const {
  std::vector<double> out(static_cast<std::size_t>(reach_), 0);
  const double mean = queue_.rate_per_s * queue_.turns * seconds;
  double chance = std::exp(-mean);
  int n = 0;
  for (std::size_t prompts = 0; prompts < sums_.size(); ++prompts) {
    const int here = (static_cast<int>(prompts) + 1) * queue_.turns - 1 - phase;
    for (; n < here; chance *= mean / ++n) {
    }
    add_scaled(out.data(), sums_[prompts].data(), chance, static_cast<int>(sums_[prompts].size()));
  }
  return out;
}

UnlikePasses::Coming UnlikePasses::arrivals(const std::vector<double>& pass_s) const {
  Coming out;
  for (const double seconds : pass_s) {
    out.emplace_back();
    for (int phase = 0; phase < queue_.turns; ++phase) out.back().push_back(coming(seconds, phase));
  }
  return out;
}

BandedChain UnlikePasses::chain_of(const Coming& come, double idle) const {
  const int turns = queue_.turns, far = std::max(reach_, static_cast<int>(queue_.sizes.size()));
  BandedChain chain(states(), queue_.most * turns + turns - 1, std::min(far, units_) * turns + turns - 1);
  for (int units = 0; units < units_; ++units) {
    for (int phase = 0; phase < turns; ++phase) {
      const double idles = units == 0 ? idle : 0;
      const PhasedChances& row = come[static_cast<std::size_t>(taken(units))][static_cast<std::size_t>(phase)];
      const int left = units - taken(units), told_apart = std::min(reach_, units_ - left);
      for (int to = 0; to < turns; ++to) {
        const double* chances = row.of(to).data();
        double* step = &chain.step(state(units, phase), state(left, to));
        for (int more = 0; more < told_apart; ++more) step[more * turns] += (1 - idles) * chances[more];
        for (int more = told_apart; more < reach_; ++more) step[(told_apart - 1) * turns] += (1 - idles) * chances[more];
      }
      if (idles <= 0) continue;
      for (std::size_t i = 0; i < queue_.sizes.size(); ++i)
        chain.step(state(0, phase), state(last(static_cast<int>(i)), 0)) += idles * queue_.sizes[i];
    }
  }
  return chain;
}

PhasedChances UnlikePasses::settled(const SolvedChain& chain) const {
  const std::vector<double> chances = chain.settled();
  PhasedChances out(queue_.turns, units_);
  for (int units = 0; units < units_; ++units) {
    for (int phase = 0; phase < queue_.turns; ++phase) out.add(phase, units, chances[static_cast<std::size_t>(state(units, phase))]);
  }
  return out;
}

PhasedChances UnlikePasses::stepped(const PhasedChances& at, const Coming& come) const {
  PhasedChances out(queue_.turns, units_ + reach_);
  each_pass(at, [&](int units, int phase, double chance) {
    const int takes = taken(units);
    const PhasedChances& row = come[static_cast<std::size_t>(takes)][static_cast<std::size_t>(phase)];
    for (int to = 0; to < queue_.turns; ++to) add_scaled(out.of(to).data() + units - takes, row.of(to).data(), chance, reach_);
  });
  PhasedChances kept(queue_.turns, units_);
  for (int phase = 0; phase < queue_.turns; ++phase) {
    for (int units = 0; units < out.units(); ++units) kept.add(phase, last(units), out.of(phase)[static_cast<std::size_t>(units)]);
  }
  return kept;
}

// What comes in so long, added.
PhasedChances UnlikePasses::with_coming(const PhasedChances& at, const std::vector<PhasedChances>& come) const {
  const int reach = come.front().units();
  PhasedChances out(queue_.turns, std::min(at.units() + reach - 1, units_));
  for (int from = 0; from < queue_.turns; ++from) {
    for (int units = 0; units < at.units(); ++units) {
      const double chance = at.of(from)[static_cast<std::size_t>(units)];
      if (chance < hardly_ever_behind) continue;
      const int number = std::min(reach, out.units() - units);
      for (int to = 0; to < queue_.turns; ++to)
        add_scaled(out.of(to).data() + units, come[static_cast<std::size_t>(from)].of(to).data(), chance, number);
    }
  }
  return out;
}

// What comes in twice the time.
std::vector<PhasedChances> UnlikePasses::twice(const std::vector<PhasedChances>& come) const {
  std::vector<PhasedChances> out;
  for (const PhasedChances& once : come) out.push_back(with_coming(once, come));
  return out;
}

// What stands behind a prompt when it is whole: those that came since it did, but for what its last pass had room for. Of as many as were
// whole with it before it and behind it.
void UnlikePasses::put_behind(const Coming& come, const LastPasses& last_passes) {
  std::vector<PhasedChances> meanwhile = come.back();
  PhasedChances came(queue_.turns, 1), whole(queue_.turns, units_), left(queue_.turns, units_);
  came.add(0, 0, 1);
  double beside_units = 0;
  const auto see = [&](int phase, int units, int room, double chance) {
    const int takes = std::min(units, room), stay = units - takes;
    beside_units += chance * takes;
    first_ahead_s_ += chance * queue_.beside_s[static_cast<std::size_t>(queue_.mixes ? taken(stay) : 0)];
    // As a state from which a pass takes as much.
    whole.add(phase, last(queue_.most - room + units), chance);
    if (stay > 0) left.add(phase, last(queue_.most - room + units), chance);
  };
  const LastPasses at_times = at_steps(last_passes);
  for (std::size_t time = 0; time < at_times.size(); ++time) {
    const std::vector<double>& of_room = at_times[time];
    for (int phase = 0; phase < queue_.turns; ++phase) {
      for (int units = 0; units < came.units(); ++units) {
        const double chance = came.of(phase)[static_cast<std::size_t>(units)];
        if (chance < hardly_ever_behind) continue;
        for (std::size_t room = 0; room < of_room.size(); ++room) {
          if (of_room[room] > 0) see(phase, units, static_cast<int>(room), chance * of_room[room]);
        }
      }
    }
    came = with_coming(came, meanwhile);
    if (length_of_step(time + 1) > length_of_step(time)) meanwhile = twice(meanwhile);
  }
  with_it_ = 2 * beside_units / queue_.mean_units;
  if (queue_.ahead && !queue_.mixes) left_ = stepped(left, come);
  behind_ = stepped(whole, come);
  each_pass(behind_, [&](int units, int, double chance) { joining_ += chance * units / queue_.mean_units; });
}

// What a pass at a state takes on average: its seconds, units of prompts, and those that are there.
UnlikePasses::MeanPass UnlikePasses::mean_pass(const PhasedChances& at) const {
  MeanPass out;
  each_pass(at, [&](int units, int, double chance) {
    out.seconds += chance * queue_.beside_s[static_cast<std::size_t>(taken(units))];
    out.units += chance * taken(units);
    out.there += chance * units;
  });
  return out;
}

// Every pass brings a token: the first ones are as long as what came with the prompt says, and as many prompts become whole in them. Those
// behind the first few come nearer to the later ones by the same share each time; by how much they differ in all follows from what is there
// more or less than later, which takes as long as its units and those that come meanwhile.
void UnlikePasses::follow(const PhasedChances& always) {
  constexpr int passes = 10;
  constexpr double near = 1e-4;  // of a token
  const MeanPass later = mean_pass(always);
  token_s_ = later.seconds;
  PhasedChances at = behind_;
  MeanPass now = mean_pass(at);
  double sum_s = 0;
  const auto add = [&](double seconds, double joins) {
    first_tokens_s_.push_back(sum_s += seconds);
    join_.push_back(joins);
  };
  for (int pass = 0; pass < passes && static_cast<double>(pass) <= queue_.most_tokens; ++pass) {
    add(now.seconds, now.units / queue_.mean_units);
    if (std::abs(now.seconds - token_s_) < near * token_s_) return;
    at = stepped(at, beside_);
    now = mean_pass(at);
  }
  const double unit_s = (queue_.beside_s.back() - queue_.beside_s.front()) / queue_.most;
  const double left_s = unit_s * (now.there - later.there) / std::max(1 - nearly_all, 1 - unit_s * queue_.rate_per_s * queue_.mean_units);
  double more_s = now.seconds - token_s_, joins = now.units - later.units;
  if (left_s * more_s <= 0 || std::abs(left_s) <= std::abs(more_s)) return;
  const double fades = 1 - more_s / left_s;
  while (first_tokens_s_.size() < most_first_tokens && std::abs(more_s) >= near * token_s_) {
    add(token_s_ + more_s, (later.units + joins) / queue_.mean_units);
    more_s *= fades;
    joins *= fades;
  }
}

double UnlikePasses::of_ended(const std::vector<double>& ends, const PhasedChances& at, int column) const {
  double sum = 0;
  for (int phase = 0; phase < queue_.turns; ++phase) {
    for (int units = 0; units < at.units(); ++units)
      sum += at.of(phase)[static_cast<std::size_t>(units)] *
             ends[static_cast<std::size_t>(state(last(units), phase) * (queue_.turns + 1) + column)];
  }
  return sum;
}

// Passes with prompts go first: tokens come when none is left. Where instances take turns the next prompts behind one's own go elsewhere.
void UnlikePasses::drain(const PhasedChances& always, const SolvedChain& chain) {
  std::vector<double> seconds(static_cast<std::size_t>(states()));
  double all_s = 0, decoding = 0;
  for (int units = 0; units < units_; ++units) {
    for (int phase = 0; phase < queue_.turns; ++phase)
      seconds[static_cast<std::size_t>(state(units, phase))] = queue_.beside_s[static_cast<std::size_t>(taken(units))];
  }
  each_pass(always, [&](int units, int, double chance) {
    all_s += chance * queue_.beside_s[static_cast<std::size_t>(taken(units))];
    decoding += units == 0 ? chance : 0;
  });
  token_s_ = all_s / decoding;
  const int turns = queue_.turns;
  ends_ = chain.ended(turns, seconds);
  for (int at = 0; at < states(); ++at) {
    double& pass_s = seconds[static_cast<std::size_t>(at)];
    pass_s *= 2 * ends_[static_cast<std::size_t>(at * (turns + 1) + turns)] - pass_s;
  }
  squares_ = chain.ended(turns, seconds);
  first_tokens_s_ = {of_ended(ends_, behind_, turns) + queue_.beside_s[0]};
  if (left_.phases() > 0) first_ahead_s_ += of_ended(ends_, left_, turns);
  if (turns == 1) return;
  std::vector<double> at;
  for (int phase = 0; phase < turns; ++phase) at.push_back(of_ended(ends_, behind_, phase));
  while (first_tokens_s_.size() < most_first_tokens) {
    std::vector<double> next(at.size(), 0);
    double mean_s = queue_.beside_s[0];
    for (int phase = 0; phase < turns; ++phase) {
      const PhasedChances& come = beside_[0][static_cast<std::size_t>(phase)];
      mean_s += at[static_cast<std::size_t>(phase)] * of_ended(ends_, come, turns);
      for (int to = 0; to < turns; ++to)
        next[static_cast<std::size_t>(to)] += at[static_cast<std::size_t>(phase)] * of_ended(ends_, come, to);
    }
    if (std::abs(mean_s - token_s_) < token_settles_within * token_s_) return;
    first_tokens_s_.push_back(first_tokens_s_.back() + mean_s);
    at.swap(next);
  }
}

}  // namespace rehearse::sim
