#include "sim/serving/pair_search.hpp"

#include <algorithm>
#include <optional>
#include <tuple>

namespace rehearse::sim {
namespace {

// A plan with the least number that could do, whatever the other side.
struct Ranked {
  std::size_t plan = 0;
  int number = 0;
  double cost = 0;
};

auto order_of(const PairChoice& choice) { return std::tuple(choice.cost, choice.gpus, choice.prompts, choice.decodes); }

class Search {
 public:
  Search(const PairProblem& problem, const PairModel& model, std::size_t keep) : problem_(problem), model_(model), keep_(keep) {}

  PairAnswer run() {
    const std::vector<Ranked> decodes = rank(problem_.decodes, [&](std::size_t plan) { return model_.least_decoders(plan); });
    const std::vector<Ranked> prompts =
        rank(problem_.prompts, [&](std::size_t plan) { return model_.least_prompters(plan, problem_.within_s); });
    PairAnswer& out = answer_;
    out.pairs = static_cast<std::uint64_t>(decodes.size()) * prompts.size();
    out.bound = std::numeric_limits<double>::infinity();
    for (const Ranked& decode : decodes) {
      for (const Ranked& prompt : prompts) {
        const double bound = decode.cost + prompt.cost;
        if (bound > worst_kept()) {
          out.bound = std::min(out.bound, bound);
          break;
        }
        ++out.looked_at;
        if (const auto choice = best_of(prompt, decode)) take(*choice);
      }
    }
    return std::move(answer_);
  }

 private:
  template <class Least>
  [[nodiscard]] std::vector<Ranked> rank(const std::vector<SidePlan>& plans, Least least) const {
    std::vector<Ranked> out;
    for (std::size_t plan = 0; plan < plans.size(); ++plan) {
      const int number = least(plan);
      if (number != no_number && number <= problem_.inventory[plans[plan].part] / plans[plan].gpus)
        out.push_back({plan, number, number * plans[plan].cost});
    }
    std::ranges::stable_sort(out, {}, &Ranked::cost);
    return out;
  }

  [[nodiscard]] double worst_kept() const {
    return answer_.best.size() < keep_ ? std::numeric_limits<double>::infinity() : answer_.best.back().cost;
  }

  void take(const PairChoice& choice) {
    std::vector<PairChoice>& best = answer_.best;
    best.insert(std::ranges::upper_bound(best, order_of(choice), {}, order_of), choice);
    if (best.size() > keep_) best.pop_back();
  }

  [[nodiscard]] PairChoice choice_of(const Ranked& prompt, int prompters, const Ranked& decode, int decoders) const {
    const SidePlan &p = problem_.prompts[prompt.plan], &d = problem_.decodes[decode.plan];
    return {prompt.plan, decode.plan, prompters, decoders, prompters * p.cost + decoders * d.cost, prompters * p.gpus + decoders * d.gpus};
  }
  // Than the best of its pair, or than what is kept.
  [[nodiscard]] bool is_better(const PairChoice& choice, const std::optional<PairChoice>& best) const {
    if (best) return order_of(choice) < order_of(*best);
    return answer_.best.size() < keep_ || order_of(choice) < order_of(answer_.best.back());
  }

  // Decoding instances from the least number up, while more of them can still be cheaper; of the others those that keep the promise.
  [[nodiscard]] std::optional<PairChoice> best_of(const Ranked& prompt, const Ranked& decode) const {
    const SidePlan &p = problem_.prompts[prompt.plan], &d = problem_.decodes[decode.plan];
    std::optional<PairChoice> best;
    if (!is_better(choice_of(prompt, prompt.number, decode, decode.number), best)) return best;
    const double between_s = model_.between_s(prompt.plan, decode.plan);
    if (!(between_s < problem_.within_s)) return best;
    for (int decoders = decode.number; decoders * d.gpus <= problem_.inventory[d.part]; ++decoders) {
      if (!is_better(choice_of(prompt, prompt.number, decode, decoders), best)) break;
      const int most = (problem_.inventory[p.part] - (p.part == d.part ? decoders * d.gpus : 0)) / p.gpus;
      if (most < prompt.number) break;
      const double within_s = problem_.within_s - between_s - model_.decoders_take_s(decode.plan, decoders);
      const int least = within_s > 0 ? model_.least_prompters(prompt.plan, within_s) : no_number;
      for (int prompters = least; prompters <= most; ++prompters) {
        const PairChoice choice = choice_of(prompt, prompters, decode, decoders);
        if (!is_better(choice, best)) break;
        if (!model_.keeps(prompt.plan, prompters, decode.plan, decoders)) continue;
        best = choice;
        break;
      }
      if (best && best->prompters == prompt.number) break;  // it cannot need fewer
    }
    return best;
  }

  const PairProblem& problem_;
  const PairModel& model_;
  std::size_t keep_;
  PairAnswer answer_;
};

}  // namespace

PairAnswer cheapest_pairs(const PairProblem& problem, const PairModel& model, std::size_t keep) {
  return Search(problem, model, keep).run();
}

}  // namespace rehearse::sim
