#include "sim/serving/pass_queue.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace rehearse::sim {
namespace {

// Of prompts that wait n or more have the chance e^(-2 n (1 - load) / load), about (heavy traffic): of so many, 1e-8.
constexpr double waiting_at_half_load = 9, waiting_at_least = 4, waiting_at_most = 80;
constexpr double rest = 1e-9;       // of a Poisson number
constexpr double deviations = 6.2;  // below its mean for less than half of that

// Chances of a Poisson number from where they begin to count.
PoissonChances poisson_chances(double mean) {
  PoissonChances out;
  out.first = static_cast<int>(std::max(0.0, mean - deviations * std::sqrt(mean)));
  double seen = 0, chance = out.first == 0 ? std::exp(-mean) : std::exp(out.first * std::log(mean) - mean - std::lgamma(out.first + 1.0));
  out.chances.reserve(static_cast<std::size_t>(2 * deviations * std::sqrt(mean)) + 10);
  for (int n = out.first; seen < 1 - rest && n < 10 * (mean + 10); chance *= mean / ++n) {
    out.chances.push_back(chance);
    seen += chance;
  }
  out.chances.back() += 1 - seen;
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

QueuedPasses::QueuedPasses(const PassQueue& queue, PassChances* known) : PromptPasses(queue) {
  const bool decodes = !queue.beside_s.empty();
  const double together = static_cast<double>(queue.most) / queue.units, full_s = (decodes ? queue.beside_s : queue.pass_s).back();
  const double load = queue.rate_per_s * full_s / together;
  const double waiting = std::min(waiting_at_most, waiting_at_least + waiting_at_half_load * load / std::max(1e-3, 1 - load));
  rows_ = static_cast<int>(std::ceil(waiting + std::max(1.0, together) - 1));
  places_ = places();
  const std::vector<PoissonChances> come = arrivals(queue_.pass_s);
  Chances nobody(states(), 0);
  nobody[0] = 1;
  const bool begins = known == nullptr || known->met.empty();
  met_ = settled(come, queue_.idle, begins ? nobody : resized(known->met, known->rows));
  Chances behind = meet(met_, come);
  if (!decodes) return;
  beside_arrivals_ = arrivals(queue_.beside_s);
  const Chances beside = settled(beside_arrivals_, 0, begins ? met_ : resized(known->beside, known->rows));
  if (known != nullptr) {
    // What becomes of prompts until none is left hangs on passes with prompts alone.
    std::vector<double> with_prompts_s(queue_.beside_s.begin() + 1, queue_.beside_s.end());
    if (known->rows == rows_ && known->with_prompts_s == with_prompts_s) ends_ = known->ends;
    *known = {met_, beside, rows_, std::move(with_prompts_s), {}};
  }
  joining_ /= 1 - std::min(nearly_all, load);
  if (queue_.mixes)
    follow(std::move(behind), beside);
  else
    drain(behind, beside);
  if (known != nullptr) known->ends = ends_;
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

std::vector<PoissonChances> QueuedPasses::arrivals(const std::vector<double>& pass_s) const {
  std::vector<PoissonChances> out;
  for (const double seconds : pass_s) out.push_back(poisson_chances(queue_.rate_per_s * queue_.turns * seconds));
  return out;
}

// From each place until no prompt is left: the chances of arrivals since the last one here by then, and the seconds.
QueuedPasses::Chances QueuedPasses::solved_ends() const {
  std::vector<double> seconds(states(), 0);
  for (std::size_t state = 0; state < states(); ++state)
    seconds[static_cast<std::size_t>(place(state))] = queue_.beside_s[static_cast<std::size_t>(taken(there(state)))];
  return SolvedChain(chain_of(beside_arrivals_, 0, true)).ended(queue_.turns, seconds);
}

// Seconds that those who come during a pass are there before it ends, together; by how many arrivals before it the last one came. Of a
// Poisson process n are there by then for P(more than n) / rate, and of one arrival more every turns-th n has one prompt more.
std::vector<double> QueuedPasses::came_s(const PoissonChances& come) const {
  const auto turns = static_cast<std::size_t>(queue_.turns);
  std::vector<double> by_rest(turns, 0);  // of n that leave so many
  double sum = 0, more = 1;
  std::size_t prompts = 0, rest = 0;
  for (std::size_t n = 0; n < come.end(); ++n) {
    if (n >= static_cast<std::size_t>(come.first)) more = std::max(0.0, more - come.chances[n - static_cast<std::size_t>(come.first)]);
    sum += more * static_cast<double>(prompts);
    by_rest[rest] += more;
    if (++rest < turns) continue;
    rest = 0;
    ++prompts;
  }
  std::vector<double> out;
  for (std::size_t phase = 0; phase < turns; ++phase) {
    if (phase > 0) sum += by_rest[turns - phase];
    out.push_back(sum / (queue_.rate_per_s * queue_.turns));
  }
  return out;
}

// By Little: the prompts that are there, and those that have not begun, at any time. What stands behind a prompt when it is whole.
QueuedPasses::Chances QueuedPasses::meet(const Chances& at, const std::vector<PoissonChances>& come) {
  double time_s = 0, idle_s = 0, spells = 0, there_s = 0, waiting_s = 0, whole = 0;
  std::vector<std::vector<double>> came_each_s;  // by units of the pass
  for (const PoissonChances& one : come) came_each_s.push_back(came_s(one));
  Chances behind(states(), 0);
  if (queue_.ahead) left_.assign(states(), 0);
  for (std::size_t state = 0; state < states(); ++state) {
    const int units = there(state);
    const double idles = units == 0 ? queue_.idle : 0, chance = at[state] * (1 - idles);
    const double apart_s = 1 / (queue_.rate_per_s * queue_.turns);
    idle_s += at[state] * idles * apart_s * (queue_.turns - phase(state));
    spells += at[state] * idles;
    if (chance <= 0) continue;
    const double seconds = queue_.pass_s[static_cast<std::size_t>(taken(units))];
    const double waits_s = came_each_s[static_cast<std::size_t>(taken(units))][static_cast<std::size_t>(phase(state))];
    time_s += chance * seconds;
    there_s += chance * (prompts(units) * seconds + waits_s);
    waiting_s += chance * ((prompts(units) - begun(units)) * seconds + waits_s);
    const int finished = prompts(units) - prompts(units - taken(units));
    whole += chance * finished;
    with_it_ += chance * finished * (finished - 1);
    if (finished <= 0) continue;
    pass_on(state, chance * finished, come[static_cast<std::size_t>(taken(units))], behind);
    if (!queue_.ahead) continue;
    const int left = units - taken(units);
    first_ahead_s_ += chance * finished * queue_.beside_s[static_cast<std::size_t>(queue_.mixes ? taken(left) : 0)];
    if (left == 0 || queue_.mixes) continue;
    left_share_ += chance * finished;
    pass_on(state, chance * finished, come[static_cast<std::size_t>(taken(units))], left_);
  }
  time_s += idle_s;
  queue_s_ = waiting_s / time_s / queue_.rate_per_s;
  prefill_s_ = there_s / time_s / queue_.rate_per_s - queue_s_;
  busy_ = 1 - idle_s / time_s;
  with_it_ /= whole;
  first_ahead_s_ /= whole;
  left_share_ /= whole;
  if (spells > 0) idle_each_s_ = idle_s / spells;
  scale_to_one(behind);
  for (std::size_t state = 0; state < states(); ++state) joining_ += behind[state] * prompts(there(state));
  return behind;
}

// Every pass brings a token: the first ones are as long as what came with the prompt says, and as many prompts become whole in them.
void QueuedPasses::follow(Chances at, const Chances& always) {
  std::vector<double> pass_s(states()), whole(states());
  for (std::size_t state = 0; state < states(); ++state) {
    const int units = there(state);
    pass_s[state] = queue_.beside_s[static_cast<std::size_t>(taken(units))];
    whole[state] = prompts(units) - prompts(units - taken(units));
  }
  token_s_ = mean_of(always, pass_s);
  Chances next;
  double sum_s = 0;
  while (first_tokens_s_.size() < most_first_tokens && static_cast<double>(first_tokens_s_.size()) <= queue_.most_tokens) {
    const double seconds = mean_of(at, pass_s), joins = mean_of(at, whole);
    first_tokens_s_.push_back(sum_s += seconds);
    join_.push_back(joins);
    if (std::abs(seconds - token_s_) < token_settles_within * token_s_) return;
    next.assign(states(), 0);
    for (std::size_t state = 0; state < states(); ++state) {
      if (at[state] > no_chance) pass_on(state, at[state], beside_arrivals_[static_cast<std::size_t>(taken(there(state)))], next);
    }
    at.swap(next);
  }
}

// Passes with prompts go first: tokens come when none is left.
void QueuedPasses::drain(const Chances& at, const Chances& always) {
  double all_s = 0, decoding = 0;
  for (std::size_t state = 0; state < states(); ++state) {
    all_s += always[state] * queue_.beside_s[static_cast<std::size_t>(taken(there(state)))];
    if (there(state) == 0) decoding += always[state];
  }
  token_s_ = all_s / decoding;
  // Behind the last token nobody waits for prompts that came with it.
  const Drained behind = drained(at);
  first_tokens_s_ = {behind.seconds + queue_.beside_s[0]};
  if (left_share_ > 0) {
    scale_to_one(left_);
    first_ahead_s_ += left_share_ * drained(std::move(left_)).seconds;
  }
  if (queue_.turns > 1) spare_first_tokens(behind.phases);
}

// A pass of all that are there: those with a prompt go on into `next`, the others end.
QueuedPasses::Drained QueuedPasses::drain_once(const Chances& at, Chances& next) const {
  Drained out{Chances(static_cast<std::size_t>(queue_.turns), 0)};
  next.assign(states(), 0);
  for (std::size_t state = 0; state < states(); ++state) {
    if (at[state] < no_chance) continue;
    const int units = there(state);
    if (units == 0) {
      out.phases[static_cast<std::size_t>(phase(state))] += at[state];
      continue;
    }
    out.left += at[state];
    out.seconds += at[state] * queue_.beside_s[static_cast<std::size_t>(taken(units))];
    pass_on(state, at[state], beside_arrivals_[static_cast<std::size_t>(taken(units))], next);
  }
  return out;
}

// Where prompts that are there lead to, with those that come meanwhile. Pass by pass, until those that are left become fewer by the same
// share each time; where that takes longer than to solve the chain, exactly.
QueuedPasses::Drained QueuedPasses::drained(Chances at) {
  Drained sum{Chances(static_cast<std::size_t>(queue_.turns), 0)};
  Chances next;
  double before = 1, share = 0;
  for (int round = 0; round < queue_.most * queue_.turns && ends_.empty(); ++round) {
    const Drained one = drain_once(at, next);
    at.swap(next);
    sum.add(one, 1, 1);
    const double last = std::exchange(share, one.left / before);
    if (one.left < rest) return sum;
    if (share < 1 && std::abs(share - last) < token_settles_within * (1 - share)) {
      sum.add(one, one.left / (before - one.left), share / (1 - share));
      return sum;
    }
    before = one.left;
  }
  return add_solved(std::move(sum), at);
}

QueuedPasses::Drained QueuedPasses::add_solved(Drained sum, const Chances& at) {
  const auto turns = static_cast<std::size_t>(queue_.turns);
  if (ends_.empty()) ends_ = solved_ends();
  for (std::size_t state = 0; state < states(); ++state) {
    const double* row = ends_.data() + static_cast<std::size_t>(place(state)) * (turns + 1);
    for (std::size_t phase = 0; phase < turns; ++phase) sum.phases[phase] += at[state] * row[phase];
    sum.seconds += at[state] * row[turns];
  }
  return sum;
}

// Where instances take turns the next prompts behind one's own go elsewhere, so that the first tokens are shorter than the later ones.
void QueuedPasses::spare_first_tokens(Chances phases) {
  const auto turns = static_cast<std::size_t>(queue_.turns);
  std::vector<double> seconds_at(turns);
  std::vector<Chances> leads;
  for (std::size_t phase = 0; phase < turns; ++phase) {
    Chances next(states(), 0);
    pass_on(static_cast<std::size_t>(state_of(0, static_cast<int>(phase))), 1, beside_arrivals_[0], next);
    Drained lead = drained(std::move(next));
    seconds_at[phase] = lead.seconds + queue_.beside_s[0];
    leads.push_back(std::move(lead.phases));
  }
  while (first_tokens_s_.size() < most_first_tokens) {
    const double seconds = mean_of(phases, seconds_at);
    if (std::abs(seconds - token_s_) < token_settles_within * token_s_) return;
    first_tokens_s_.push_back(first_tokens_s_.back() + seconds);
    Chances next(turns, 0);
    for (std::size_t from = 0; from < turns; ++from) {
      for (std::size_t to = 0; to < turns; ++to) next[to] += phases[from] * leads[from][to];
    }
    phases.swap(next);
  }
}

// Who begins to decode d passes after it is beside it in all but d of its passes; each of a pair is beside the other. Of prompts that go
// first those that are there when one is whole, and those that come until none is, begin with it, and later ones as they come.
double PromptPasses::sequences_beside(double tokens) const {
  if (!queue_.mixes) return 2 * joining_ + queue_.rate_per_s * token_s_ * std::max(0.0, tokens - 1);
  double sum = with_it_;
  double pass = 1;
  for (const double joins : join_) {
    if (pass >= tokens) return sum;
    sum += 2 * (1 - pass++ / tokens) * joins;
  }
  // Those of the passes from there on: of 1 - d / tokens so many.
  const double left = std::max(0.0, tokens - pass), number = std::ceil(left);
  return sum + 2 * queue_.rate_per_s * token_s_ * number * (left - (number - 1) / 2) / tokens;
}

double PromptPasses::tokens_s(double tokens) const {
  const auto known = static_cast<double>(first_tokens_s_.size());
  if (tokens >= known) return first_tokens_s_.back() + (tokens - known) * token_s_;
  const auto whole = static_cast<std::size_t>(tokens);
  const double low = whole > 0 ? first_tokens_s_[whole - 1] : 0;
  return low + (tokens - static_cast<double>(whole)) * (first_tokens_s_[whole] - low);
}

}  // namespace rehearse::sim
