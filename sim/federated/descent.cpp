#include "sim/federated/descent.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "sim/federated/load_matrix.hpp"

namespace rehearse::federated {
namespace {

constexpr double descent_rounding = 1e-12;  // savings below that part are rounding errors

struct Move {
  std::size_t device = 0;
  std::uint32_t to = 0;
  double saving = 0;  // of the devices' total cost at the present prices, which is 1
};

class Descent {
 public:
  Descent(const Problem& problem, Cuts start, double gap, const DeadlineSolver& solve)
      : problem_(problem), solve_(solve), gap_(gap), slowest_alone_s_(slowest_alone_s(problem)) {
    now_.cuts = std::move(start);
    options_ = chosen(problem, now_.cuts);
    now_.at = solve_(options_, std::numeric_limits<double>::infinity());
    now_.solves = 1;
  }

  Descended run() {
    constexpr int most_rounds = 1000;
    for (int round = 0; round < most_rounds; ++round) {
      if (now_.at.round_s <= slowest_alone_s_ * (1 + descent_rounding)) {
        now_.fixed_point = true;  // a device alone is as slow whatever it chooses
        break;
      }
      std::vector<Move> moves = best_moves();
      if (moves.empty()) {
        now_.fixed_point = now_.at.slope > 0;
        break;
      }
      if (near_enough(moves) || (!take_some(moves) && !take_one())) break;
    }
    return now_;
  }

 private:
  // Largest savings first.
  [[nodiscard]] std::vector<Move> best_moves() {
    std::vector<Move> moves;
    free_slope_ = 0;
    for (std::size_t n = 0; n < problem_.devices(); ++n) {
      const Response best = best_response(problem_.of(n), now_.at.round_s, now_.at.root_price);
      const double cost = cost_of(options_[n], now_.at.round_s, now_.at.root_price);
      if (best.exists) free_slope_ += best.cost / best.left_s;
      if (best.exists && best.option != now_.cuts[n] && best.cost < cost * (1 - descent_rounding))
        moves.push_back({n, best.option, cost - best.cost});
    }
    std::ranges::stable_sort(moves, std::ranges::greater{}, &Move::saving);
    return moves;
  }

  // To first order the savings shorten the round by their sum over the slope at which the best responses' cost grows as T falls.
  [[nodiscard]] bool near_enough(const std::vector<Move>& moves) const {
    double saving = 0;
    for (const Move& move : moves) saving += move.saving;
    return saving < gap_ / 2 * free_slope_ * now_.at.round_s;
  }

  bool take_some(const std::vector<Move>& moves) {
    for (std::size_t count = moves.size(); count > 0; count /= 2) {
      if (accept(std::span(moves).first(count))) return true;
    }
    return false;
  }

  // Any option cheaper than the present one, in the order of savings, with which the load matrix has room at the present deadline.
  bool take_one() {
    LoadMatrix load;
    for (const Option& option : options_) {
      if (now_.at.round_s > option.alpha_s) load.add(option.root, 1 / (now_.at.round_s - option.alpha_s));
    }
    std::optional<Move> best;
    for (std::size_t n = 0; n < problem_.devices(); ++n) consider(n, load, best);
    return best && accept(std::span(&*best, 1));
  }

  void consider(std::size_t device, const LoadMatrix& load, std::optional<Move>& best) const {
    const double deadline_s = now_.at.round_s;
    const Option& present = options_[device];
    const double cost = cost_of(present, deadline_s, now_.at.root_price);
    for (std::uint32_t c = 0; c < problem_.of(device).size(); ++c) {
      const Option& option = problem_.of(device)[c];
      const double saving = cost - cost_of(option, deadline_s, now_.at.root_price);
      if (c == now_.cuts[device] || !(saving > descent_rounding * cost) || (best && saving <= best->saving)) continue;
      LoadMatrix changed = load;
      if (deadline_s > present.alpha_s) changed.add(present.root, -1 / (deadline_s - present.alpha_s));
      changed.add(option.root, 1 / (deadline_s - option.alpha_s));
      if (radius_below_one(changed)) best = Move{device, c, saving};
    }
  }

  bool accept(std::span<const Move> moves) {
    std::vector<std::uint32_t> before;
    for (const Move& move : moves) {
      before.push_back(now_.cuts[move.device]);
      set(move.device, move.to);
    }
    const Deadline found = solve_(options_, now_.at.round_s);
    ++now_.solves;
    if (found.round_s < now_.at.round_s * (1 - descent_rounding)) {
      now_.at = found;
      return true;
    }
    for (std::size_t i = 0; i < moves.size(); ++i) set(moves[i].device, before[i]);
    return false;
  }

  void set(std::size_t device, std::uint32_t to) {
    now_.cuts[device] = to;
    options_[device] = problem_.of(device)[to];
  }

  const Problem& problem_;
  const DeadlineSolver& solve_;
  double gap_, slowest_alone_s_;
  double free_slope_ = 0;  // of the best responses' cost, at the last look
  Descended now_;
  std::vector<Option> options_;
};

}  // namespace

Descended descend(const Problem& problem, Cuts start, double gap, const DeadlineSolver& solve) {
  return Descent(problem, std::move(start), gap, solve).run();
}

}  // namespace rehearse::federated
