#include "sim/serving/cut_prompts.hpp"

#include <algorithm>
#include <cmath>

namespace rehearse::sim {
namespace {

constexpr int most_turns = 8;         // more are hardly more even
constexpr int most_unlike_turns = 3;  // of unlike prompts, whose lengths are what is uneven
constexpr int quarters_of_a_prompt = 4;
constexpr double most_passes = 64;  // of a prompt, as the chain counts them, which grows with them: of more, several are one
constexpr double few_passes = 3;    // of a prompt: more are cut into halves
constexpr double cut_finely = 4;    // where fewer prompts fit into a pass, what is left of one goes into it too
constexpr int most_coarse_units = 8,
              most_unlike_units = 32;  // of a pass; of instances in turn, whose chain has as many states for each, fewer

// Between whole numbers of sequences.
template <class F>
double between_whole(double sequences, F at) {
  const double low = std::floor(sequences), share = sequences - low;
  return share > 0 ? at(low) + share * (at(low + 1) - at(low)) : at(low);
}

// Units of so many tokens, of which a prompt takes one more or fewer as its length says on average.
std::vector<double> sizes_of(const LoadMoments& load, double unit) {
  std::vector<double> out;
  const bool finds = !load.found_in_order.empty();
  const std::vector<workloads::Lengths>& requests = *load.requests;
  const std::size_t from = finds ? load.counted_from : 0;
  const double each = 1 / static_cast<double>(requests.size() - from);
  for (std::size_t i = from; i < requests.size(); ++i) {
    const double units = (requests[i].input - (finds ? load.found_in_order[i] : 0)) / unit, low = std::floor(units);
    const auto at = static_cast<std::size_t>(low);
    if (out.size() < at + 2) out.resize(at + 2, 0);
    out[at] += each * (1 - (units - low));
    out[at + 1] += each * (units - low);
  }
  return out;
}

}  // namespace

PassUnits::PassUnits(const PoolFormula& pool, double sequences, int turns, bool coarsely) {
  if (pool.load().input_variation <= 0)
    cut_equal(pool, sequences);
  else if (coarsely)
    cut_unlike(pool, sequences, 1, most_coarse_units);
  else
    cut_unlike(pool, sequences, turns > 1 ? quarters_of_a_prompt / 2 : quarters_of_a_prompt,
               most_unlike_units / std::min(turns, most_unlike_turns));
}

void PassUnits::cut_equal(const PoolFormula& pool, double sequences) {
  constexpr double any = 1e6;
  const PoolFormula::Prompt alone = pool.prompt_s(sequences);
  if (pool.lanes() <= 1 && alone.passes > 1 && pool.tokens_of_a_prompt() > pool.room_of_a_pass(sequences)) {
    const double passes = pool.tokens_of_a_prompt() / pool.room_of_a_pass(sequences);
    most_ = passes > few_passes ? 2 : quarters_of_a_prompt;
    mean_units_ = units_ = std::max(most_ + 1, static_cast<int>(std::lround(most_ * std::min(passes, most_passes))));
    double pieces_s = 0;
    for (int left = units_; left > 0; left -= most_) pieces_s += seconds(pool, std::min(left, most_), sequences);
    weight_ = alone.seconds / pieces_s;
    return;
  }
  const double fit = std::min(256.0, pool.prompts_of_a_pass(any, sequences));
  mean_units_ = units_ = pool.pool().rules.chunked_prefill && fit < cut_finely ? quarters_of_a_prompt : 1;
  most_ = std::max(units_, static_cast<int>(fit * units_));
}

// Where prompts are not cut, of the last one that begins to fill a pass a part is in the next: the mean of what lies before a place
// among them.
void PassUnits::cut_unlike(const PoolFormula& pool, double sequences, double parts, int most_units) {
  const double mean = pool.tokens_of_a_prompt(), whole = pool.room_of_a_pass(sequences);
  const double left_over = pool.pool().rules.chunked_prefill ? 0 : mean * (1 + pool.load().input_variation) / 2;
  const double room = std::max(whole - left_over, std::min(whole, mean));
  most_ = std::clamp(static_cast<int>(std::lround(parts * room / mean)), 1, most_units);
  sizes_ = sizes_of(pool.load(), room / most_);
  mean_units_ = mean / room * most_;
  const PoolFormula::Prompt alone = pool.prompt_s(sequences);
  if (alone.passes <= 1) return;
  double pieces_s = 0;
  for (double left = mean_units_; left > 0; left -= most_)
    pieces_s += pool.together_s(std::min<double>(left, most_) / mean_units_, std::floor(sequences));
  weight_ = alone.seconds / pieces_s;
}

double PassUnits::seconds(const PoolFormula& pool, int u, double sequences) const {
  return weight_ * between_whole(sequences, [&](double beside) {
           return sizes_.empty() && u == units_ ? pool.prompt_s(beside).seconds : pool.together_s(u / mean_units_, beside);
         });
}

PassQueue PassUnits::queue(const PoolFormula& pool, double rate_per_s, int turns, double sequences) const {
  PassQueue queue;
  queue.rate_per_s = rate_per_s;
  queue.turns = std::min(turns, sizes_.empty() ? most_turns : most_unlike_turns);
  queue.units = units_;
  queue.most = most_;
  queue.sizes = sizes_;
  queue.mean_units = mean_units_;
  queue.mixes = pool.mixes();
  queue.pass_s.push_back(0);
  for (int u = 1; u <= most_; ++u) queue.pass_s.push_back(seconds(pool, u, sequences));
  return queue;
}

}  // namespace rehearse::sim
