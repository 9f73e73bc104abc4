#include "sim/serving/unlike_servers.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace rehearse::sim {
namespace {

// The root of what grows from `low` on.
template <class Value>
double growing_root(double low, double high, Value value) {
  constexpr int halvings = 200;
  for (int i = 0; i < halvings; ++i) {
    const double middle = low + (high - low) / 2;
    (value(middle) < 0 ? low : high) = middle;
  }
  return low;
}

struct AllServers {
  double number = 0, capacity_per_s = 0, load = 0;
};

AllServers all_of(std::span<const ServerKind> kinds, double rate_per_s) {
  AllServers all;
  for (const ServerKind& kind : kinds) {
    all.number += kind.number;
    all.capacity_per_s += kind.number / kind.service_s;
  }
  all.load = rate_per_s / all.capacity_per_s;
  return all;
}

// Who works, as bits, and whose turn is next; the states in which somebody waits are one, whose servers end with nobody waiting in a share
// 1 - load of the time.
class TurnChain {
 public:
  TurnChain(std::span<const ServerKind> kinds, double rate_per_s) : rate_per_s_(rate_per_s), load_(all_of(kinds, rate_per_s).load) {
    for (const ServerKind& kind : kinds) ends_per_s_.insert(ends_per_s_.end(), static_cast<std::size_t>(kind.number), 1 / kind.service_s);
    everybody_ = (std::size_t{1} << servers()) - 1;
    chances_.assign((everybody_ + 1) * servers(), 1.0 / static_cast<double>((everybody_ + 1) * servers()));
    connect();
    settle();
  }

  [[nodiscard]] double waits() const {
    double sum = 0;
    for (std::size_t next = 0; next < servers(); ++next) sum += chances_[state(everybody_, next)];
    return sum;
  }
  [[nodiscard]] double works(std::size_t server) const {
    double sum = 0;
    for (std::size_t i = 0; i < chances_.size(); ++i) sum += (i / servers() >> server & 1U) != 0 ? chances_[i] : 0;
    return sum;
  }

 private:
  struct Way {
    std::size_t from = 0;
    double per_s = 0;
  };
  [[nodiscard]] std::size_t servers() const { return ends_per_s_.size(); }
  [[nodiscard]] std::size_t state(std::size_t working, std::size_t next) const { return working * servers() + next; }
  void lead(std::size_t from, std::size_t to, double per_s) {
    into_[to].push_back({from, per_s});
    leaves_per_s_[from] += per_s;
  }
  void connect() {
    into_.resize(chances_.size());
    leaves_per_s_.resize(chances_.size());
    for (std::size_t working = 0; working <= everybody_; ++working) {
      for (std::size_t next = 0; next < servers(); ++next) {
        const double share = working == everybody_ ? 1 - load_ : 1;
        for (std::size_t one = 0; one < servers(); ++one) {
          if ((working >> one & 1U) != 0)
            lead(state(working, next), state(working & ~(std::size_t{1} << one), next), share * ends_per_s_[one]);
        }
        if (working == everybody_) continue;
        std::size_t taken = next;
        while ((working >> taken & 1U) != 0) taken = (taken + 1) % servers();
        lead(state(working, next), state(working | std::size_t{1} << taken, (taken + 1) % servers()), rate_per_s_);
      }
    }
  }
  // Gauss and Seidel.
  void settle() {
    constexpr int most_rounds = 10'000;
    constexpr double settled = 1e-12;
    double moved = 1;
    for (int round = 0; round < most_rounds && moved > settled; ++round) {
      moved = 0;
      double sum = 0;
      for (std::size_t i = 0; i < chances_.size(); ++i) {
        double come = 0;
        for (const Way& way : into_[i]) come += chances_[way.from] * way.per_s;
        moved += std::abs(come / leaves_per_s_[i] - chances_[i]);
        chances_[i] = come / leaves_per_s_[i];
        sum += chances_[i];
      }
      for (double& chance : chances_) chance /= sum;
    }
  }

  double rate_per_s_, load_;
  std::size_t everybody_ = 0;
  std::vector<double> ends_per_s_, chances_, leaves_per_s_;
  std::vector<std::vector<Way>> into_;
};

ServerQueue chained(std::span<const ServerKind> kinds, double rate_per_s) {
  const TurnChain chain(kinds, rate_per_s);
  ServerQueue out{.waits = chain.waits(), .wait_s = 0, .shares = {}};
  std::size_t server = 0;
  for (const ServerKind& kind : kinds) {
    double work = 0;
    for (int i = 0; i < static_cast<int>(kind.number); ++i) work += chain.works(server++);
    out.shares.push_back(work / kind.service_s / rate_per_s);
  }
  return out;
}

// Of n servers of all kinds the chance that all work, where who comes takes an idle one at random.
double chance_that_all_work(std::span<const ServerKind> kinds, double rate_per_s, const AllServers& all) {
  const int servers = static_cast<int>(all.number);
  std::vector<double> chances{1};
  for (const ServerKind& kind : kinds) {
    const double odds = rate_per_s * kind.service_s / all.number;
    for (int server = 0; server < static_cast<int>(kind.number); ++server) {
      chances.push_back(0);
      for (std::size_t k = chances.size() - 1; k > 0; --k) chances[k] = (chances[k] + odds * chances[k - 1]) / (1 + odds);
      chances[0] /= 1 + odds;
    }
  }
  // A state in which k of n work has its chance by independence times n^k (n - k)! / n!.
  double sum = chances[0], logarithm = 0, last = chances[0];
  for (int k = 1; k <= servers; ++k) {
    logarithm += std::log(servers) - std::log(servers - k + 1);
    const double chance = chances[static_cast<std::size_t>(k)];
    last = chance > 0 ? std::exp(std::log(chance) + logarithm) : 0;
    sum += last;
  }
  const double queue = last * all.load / (1 - all.load);
  return (last + queue) / (sum + queue);
}

// Servers are asked in turn, each after `apart` arrivals. One that works for S misses the turns of these that S holds: floor(N / apart), N
// Poisson.
double turns_missed(double arrivals, double apart) {
  constexpr double rest = 1e-10, many = 500;  // of whose number the spread does not count
  if (arrivals > many) return std::max(0.0, arrivals / apart - 0.5);
  double chance = std::exp(-arrivals), seen = 0, missed = 0;
  for (int n = 0; seen < 1 - rest && n < 10 * (arrivals + 10); ++n) {
    missed += chance * std::floor(n / apart);
    seen += chance;
    chance *= arrivals / (n + 1);
  }
  return missed;
}

// So many arrivals lie between the turns of one as servers are found idle in a round.
std::vector<double> shares_in_turn(std::span<const ServerKind> kinds, double rate_per_s, const AllServers& all) {
  const auto found_idle = [&](double apart) {
    std::vector<double> idle;
    for (const ServerKind& kind : kinds) idle.push_back(kind.number / (1 + turns_missed(rate_per_s * kind.service_s, apart)));
    return idle;
  };
  constexpr int halvings = 60;
  double low = 0.1, high = all.number;
  for (int i = 0; i < halvings; ++i) {
    const double middle = (low + high) / 2;
    const std::vector<double> idle = found_idle(middle);
    (std::accumulate(idle.begin(), idle.end(), 0.0) < middle ? high : low) = middle;
  }
  std::vector<double> shares = found_idle(high);
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  for (double& share : shares) share /= sum;
  return shares;
}

}  // namespace

ServerQueue unlike_servers(std::span<const ServerKind> kinds, double rate_per_s) {
  const AllServers all = all_of(kinds, rate_per_s);
  ServerQueue out{.waits = 1, .wait_s = INFINITY, .shares = {}};
  std::vector<double> when_all_work;
  for (const ServerKind& kind : kinds) when_all_work.push_back(kind.number / kind.service_s / all.capacity_per_s);
  if (all.load >= 1) {
    out.shares = when_all_work;
    return out;
  }
  if (all.number <= most_chained) {
    out = chained(kinds, rate_per_s);
  } else {
    out.waits = chance_that_all_work(kinds, rate_per_s, all);
    out.shares = shares_in_turn(kinds, rate_per_s, all);
    for (std::size_t i = 0; i < kinds.size(); ++i) out.shares[i] += out.waits * (when_all_work[i] - out.shares[i]);
  }
  out.wait_s = out.waits / (all.capacity_per_s - rate_per_s);
  return out;
}

std::vector<double> fewest_first_shares(std::span<const double> numbers,
                                        const std::function<double(std::size_t kind, int requests)>& rate_of, double rate_per_s, int most) {
  const auto ended = [&](int requests) {
    double sum = 0;
    for (std::size_t kind = 0; kind < numbers.size(); ++kind) sum += numbers[kind] * rate_of(kind, requests);
    return sum;
  };
  int level = 0;
  while (level < most && ended(level + 1) < rate_per_s) ++level;
  // Those with one more than the level end at `more` and come at the rate a for each that has none more: a share a / (a + more) has.
  const auto rate_at = [&](std::size_t kind, double a) {
    const double less = level > 0 ? rate_of(kind, level) : 0, more = rate_of(kind, level + 1), share = a / (a + more);
    return share * more + (1 - share) * less;
  };
  const auto excess = [&](double log_a) {
    double sum = 0;
    for (std::size_t kind = 0; kind < numbers.size(); ++kind) sum += numbers[kind] * rate_at(kind, std::exp(log_a));
    return sum - rate_per_s;
  };
  constexpr double widest = 50;  // e^-50 to e^50 of the rate
  const double a = std::exp(growing_root(std::log(rate_per_s) - widest, std::log(rate_per_s) + widest, excess));
  std::vector<double> shares;
  double sum = 0;
  for (std::size_t kind = 0; kind < numbers.size(); ++kind) {
    shares.push_back(numbers[kind] * rate_at(kind, a));
    sum += shares.back();
  }
  for (double& share : shares) share /= sum;
  return shares;
}

}  // namespace rehearse::sim
