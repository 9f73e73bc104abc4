#include <algorithm>
#include <cmath>

#include "sim/serving/static_batches.hpp"

namespace rehearse::sim {
namespace {

// A chain from batch to batch, by how many are there and how many others have come since the last one of its own: of N that come to all
// instances during a batch the m-th comes at m / (N + 1) of it on average. Who finds no slot waits for the whole batch.
class BatchChain {
 public:
  BatchChain(const PoolFormula& pool, const LoadMoments& load, double rate_per_s, int turns)
      : turns_(std::min(turns, most_turns)), slots_(static_cast<int>(std::min<double>(pool.most_sequences(), most))) {
    const bool unlike = load.steps.size() > 1 || load.input_variation > 0;
    for (int n = 1; n <= slots_; ++n) {
      batches_.push_back(static_batch(pool, load, n));
      const std::vector<double> lengths =
          unlike ? unlike_batches(pool, load, n, unlike_shares) : std::vector<double>{batches_.back().seconds};
      for (int there = n; there <= (n < slots_ ? n : most); ++there) {
        for (int since = 0; since < turns_; ++since) rows_.push_back(row(lengths, there - n, since, rate_per_s * turns_));
      }
    }
    settle();
  }
  [[nodiscard]] bool holds() const { return full_ < hardly; }  // hardly ever more would be there than those looked at

  [[nodiscard]] BatchesInTurn of_requests() const {
    BatchesInTurn out;
    double served = 0, come = 0, wait_s = 0, busy_s = 0, batches = 0;
    for (std::size_t at = 0; at < rows_.size(); ++at) {
      const std::size_t n = std::min(at / static_cast<std::size_t>(turns_), batches_.size() - 1);
      const double requests = chance_[at] * static_cast<double>(n + 1);
      served += requests;
      batches += chance_[at];
      come += chance_[at] * rows_[at].come;
      wait_s += chance_[at] * rows_[at].wait_s;
      busy_s += chance_[at] * batches_[n].seconds;
      out.met.first_s += requests * batches_[n].first_s;
      out.met.tpot_s += requests * batches_[n].tpot_s;
    }
    out.met.first_s /= served;
    out.met.tpot_s /= served;
    out.queue_s = wait_s / served;
    out.batch = served / batches;
    out.waits = come / served;
    out.longest_s = come > 0 ? 2 * wait_s / come : 0;
    out.met.seconds = busy_s / batches;
    return out;
  }

 private:
  static constexpr int most = 24, most_turns = 16, unlike_shares = 8;
  static constexpr double hardly = 1e-3;
  struct Row {
    std::vector<double> next;
    double come = 0, wait_s = 0;
  };

  [[nodiscard]] Row row(const std::vector<double>& lengths, int left_over, int since, double all_per_s) const {
    constexpr double tail = 1e-10;
    Row out{.next = std::vector<double>(static_cast<std::size_t>(most * turns_), 0)};
    for (const double seconds : lengths) {
      const double mean = all_per_s * seconds;
      double left = 1, log_chance = -mean;
      for (int all = 0; left > tail; log_chance += std::log(mean / ++all)) {
        const double chance = std::exp(log_chance);
        left -= chance;
        if (all > mean && chance < tail) break;
        const double weight = chance / static_cast<double>(lengths.size());
        const int own = (since + all) / turns_;
        for (int i = 1; i <= own; ++i) out.wait_s += weight * seconds * (1 - (i * turns_ - since) / (all + 1.0));
        out.come += weight * own;
        out.wait_s += weight * seconds * left_over;
        const int there = left_over + own;
        const int to = there == 0 ? 0 : (std::min(there, most) - 1) * turns_ + (since + all) % turns_;
        out.next[static_cast<std::size_t>(to)] += weight;
      }
    }
    return out;
  }

  void settle() {
    constexpr int rounds = 100;
    constexpr double near = 1e-9;
    chance_.assign(rows_.size(), 0);
    chance_[0] = 1;
    for (int round = 0; round < rounds; ++round) {
      std::vector<double> next(rows_.size(), 0);
      for (std::size_t from = 0; from < rows_.size(); ++from) {
        if (chance_[from] <= 0) continue;
        for (std::size_t to = 0; to < next.size(); ++to) next[to] += chance_[from] * rows_[from].next[to];
      }
      double moved = 0;
      for (std::size_t at = 0; at < next.size(); ++at) moved += std::abs(next[at] - chance_[at]);
      chance_ = std::move(next);
      if (moved < near) break;
    }
    full_ = 0;
    for (std::size_t at = rows_.size() - static_cast<std::size_t>(turns_); at < rows_.size(); ++at) full_ += chance_[at];
  }

  int turns_, slots_;
  std::vector<StaticBatch> batches_;
  std::vector<Row> rows_;  // [those there][arrivals elsewhere since the last one here]
  std::vector<double> chance_;
  double full_ = 0;
};

}  // namespace

std::optional<BatchesInTurn> batches_in_turn(const PoolFormula& pool, const LoadMoments& load, double rate_per_s, int turns) {
  const BatchChain chain(pool, load, rate_per_s, turns);
  if (!chain.holds()) return std::nullopt;
  return chain.of_requests();
}

}  // namespace rehearse::sim
