#include "sim/serving/tune_confirm.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <set>
#include <thread>

#include "config/threads.hpp"
#include "sim/serving/deployment.hpp"
#include "sim/serving/goodput.hpp"

namespace rehearse::sim {
namespace {

constexpr std::size_t a_round = 4;  // simulated at once, whatever the number of threads

class Confirming {
 public:
  Confirming(const ServingJob& job, const ServingTuneSpec& spec, ServingTuning& tuning) : job_(job), spec_(spec), out_(tuning) {}

  void run(const std::function<void(double)>& progress) {
    std::set<std::string> kinds;
    for (std::size_t next = 0; next < out_.best.size();) {
      std::vector<std::size_t> round;
      for (; next < out_.best.size() && round.size() < a_round; ++next) {
        const bool first = kinds.insert(out_.best[next].kind).second;
        if (first || is_wanted(next)) round.push_back(next);
      }
      simulate(round);
      for (const std::size_t i : round) {
        if (is_better(i)) out_.chosen = i;
      }
      progress(static_cast<double>(next) / static_cast<double>(out_.best.size()));
    }
  }

 private:
  [[nodiscard]] ServingGoal goal() const { return out_.goals.front(); }

  [[nodiscard]] bool is_wanted(std::size_t i) const {
    if (!out_.chosen) return true;
    const bool settled = goal() == ServingGoal::cost || goal() == ServingGoal::gpus;
    return i < static_cast<std::size_t>(spec_.confirm) && (spec_.confirms_all || !settled);
  }

  void simulate(const std::vector<std::size_t>& round) {
    const bool is_raced = out_.chosen && is_of_rates(goal()) && !spec_.confirms_all && std::isfinite(value_of(*out_.chosen));
    const double best = is_raced ? value_of(*out_.chosen) : 0;
    std::atomic<std::size_t> next{0};
    const auto threads = static_cast<unsigned>(std::min<std::size_t>(round.size(), std::max(1U, std::thread::hardware_concurrency())));
    if (threads == 0) return;
    config::on_threads(threads, [&] {
      for (std::size_t at = next++; at < round.size(); at = next++) simulate(out_.best[round[at]], best);
    });
  }

  // best: what a request's price or a second brings with another; 0: it is not held against that.
  void simulate(TunedDeployment& one, double best) const {
    const ServingJob job = with_pools(job_, one, best > 0 ? best * unit_of(one) : out_.formula_per_s(one));
    const Deployment deployment = deploy(job);
    const ServingSetup setup = setup_of(job, deployment);
    one.simulated = result_of(job, setup, simulate_serving(setup));
    if (best > 0 && !one.simulated->kept) {
      one.below_per_s = best * unit_of(one);
      return;
    }
    if (is_of_rates(goal())) one.simulated->goodput_per_s = goodput_of(job, deployment, [](double) {});
  }

  [[nodiscard]] double unit_of(const TunedDeployment& one) const { return goal() == ServingGoal::goodput_per_cost ? one.cost_per_s : 1; }
  [[nodiscard]] double value_of(std::size_t i) const { return out_.best[i].simulated->goodput_per_s / unit_of(out_.best[i]); }

  [[nodiscard]] bool is_better(std::size_t i) const {
    if (is_of_rates(goal())) return value_of(i) > (out_.chosen ? value_of(*out_.chosen) : 0);
    const ServingResult& one = *out_.best[i].simulated;
    if (!one.kept || !out_.chosen) return one.kept;
    const ServingResult& chosen = *out_.best[*out_.chosen].simulated;
    if (goal() == ServingGoal::ttft) return one.promised_ttft_s < chosen.promised_ttft_s;
    return goal() == ServingGoal::tpot && one.promised_tpot_s < chosen.promised_tpot_s;
  }

  const ServingJob& job_;
  const ServingTuneSpec& spec_;
  ServingTuning& out_;
};

}  // namespace

void confirm_tuned(const ServingJob& job, const ServingTuneSpec& spec, ServingTuning& tuning, const std::function<void(double)>& progress) {
  if (tuning.best.empty()) return;
  if (spec.confirm == 0) {
    tuning.chosen = 0;
    return;
  }
  Confirming(job, spec, tuning).run(progress);
  // Those behind were kept for when none of the first does.
  const auto unknown = std::find_if(tuning.best.rbegin(), tuning.best.rend(), [](const TunedDeployment& one) { return one.simulated; });
  const auto most = std::max(static_cast<std::size_t>(spec.keep), static_cast<std::size_t>(tuning.best.rend() - unknown));
  if (tuning.goals.front() != ServingGoal::cost && tuning.best.size() > most) tuning.best.resize(most);
}

}  // namespace rehearse::sim
