#include "sim/wholejob/reasons.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "config/quantity.hpp"
#include "sim/job/recovery_policy.hpp"

namespace rehearse::sim {
namespace {

constexpr double negligible_points = 0.01;

std::string time_text(double seconds) { return config::human_quantity(seconds, config::Dimension::time); }

// Means over the runs.
class Means {
 public:
  explicit Means(const std::vector<RunResult>& runs) : runs_(runs) {}
  template <class Get>
  [[nodiscard]] double of(Get get) const {
    return statistics_over(runs_, get).mean;
  }
  [[nodiscard]] double share(Cause cause) const {
    return of([&](const RunResult& run) { return to_s(run.account[cause]) / to_s(std::max<Ns>(1, run.wall)); });
  }
  [[nodiscard]] double failures() const {
    return of([](const RunResult& run) { return run.all_failures(); });
  }

 private:
  const std::vector<RunResult>& runs_;
};

class Explainer {
 public:
  explicit Explainer(const WholeJobReport& report)
      : plan_(report.plan), whole_(plan_.job->whole), input_(plan_.formula_input), formula_(report.formula), means_(report.runs) {}

  std::vector<EttrDifference> all() {
    const double total_s = formula_.total_s();
    const double saving_s = input_.saves() * input_.save_s;
    const double recovery_s = formula_.failures * input_.repair_s;
    const double rollback_s = formula_.failures * input_.interval_steps * input_.step_s / 2;
    add("saving", means_.share(Cause::saving) - saving_s / total_s, saving());
    const double rollback_more = means_.share(Cause::rollback) - rollback_s / total_s;
    add("rollback", rollback_more, rollback(rollback_more > 0));
    add("recovery", means_.share(Cause::detection) + means_.share(Cause::restart) + means_.share(Cause::load) - recovery_s / total_s,
        recovery());
    add("repair", means_.share(Cause::repair), waiting());
    add("degraded", means_.share(Cause::degraded), degraded());
    add("init", means_.share(Cause::init) - input_.init_s / total_s, "the first start is a larger or smaller part of another total time");
    add("unfinished", means_.share(Cause::unfinished), "the step or save during which the time was up");
    std::ranges::stable_sort(all_,
                             [](const EttrDifference& a, const EttrDifference& b) { return std::abs(a.points) > std::abs(b.points); });
    return std::move(all_);
  }

 private:
  void add(std::string cause, double share, std::string reason) {
    if (std::abs(100 * share) >= negligible_points) all_.push_back({std::move(cause), 100 * share, std::move(reason)});
  }

  // How many failures there were, where that is not what the rates say.
  [[nodiscard]] std::vector<std::string> counted() const {
    const double failures = means_.failures();
    if (std::abs(failures - formula_.failures) < 0.01 * std::max(1.0, formula_.failures)) return {};
    std::string text =
        fmt::format("{:.1f} failures are felt, the formula counts {:.1f}, those during training only", failures, formula_.failures);
    const double idle = means_.of([](const RunResult& run) { return run.not_felt; });
    if (idle > 0) text += fmt::format("; {:.1f} strike idle nodes", idle);
    return {text};
  }

  [[nodiscard]] static std::string joined(const std::vector<std::string>& reasons, const char* otherwise) {
    return reasons.empty() ? otherwise : fmt::format("{}", fmt::join(reasons, "; "));
  }

  [[nodiscard]] std::string saving() const {
    std::vector<std::string> reasons;
    const TrainingPlan& training = plan_.training;
    const double interval_s = input_.interval_steps * input_.step_s;
    if (plan_.checkpoint.background_s > interval_s) {
      reasons.push_back(
          fmt::format("a background write of {} takes longer than the {} from checkpoint to checkpoint, and the next one waits",
                      time_text(plan_.checkpoint.background_s), time_text(interval_s)));
    }
    const double saves = means_.of([](const RunResult& run) { return run.saves; });
    const double planned = input_.saves();
    if (std::abs(saves - planned) >= 1) {
      reasons.push_back(
          fmt::format("{:.1f} checkpoints are taken, some of them again after a rollback, the formula counts {:.1f}", saves, planned));
    }
    if (training.steps != INT64_MAX && training.steps % training.interval != 0) reasons.emplace_back("one more after the last step");
    return joined(reasons, "a part of another total time");
  }

  // `more`: than the formula; what can only add to it explains nothing else.
  [[nodiscard]] std::string rollback(bool more) const {
    std::vector<std::string> reasons = counted();
    if (!more) return joined(reasons, "failures come earlier than half way between checkpoints on average in so few of them");
    if (whole_.checkpoint.async) {
      reasons.push_back(fmt::format("a checkpoint counts only when its background write of {} has ended; the formula lets it count at once",
                                    time_text(plan_.checkpoint.background_s)));
    }
    if (plan_.checkpoint.store == Store::memory) {
      reasons.emplace_back("checkpoints in memory are lost with all nodes that hold a part, and the job falls back further");
    }
    if (plan_.checkpoint.blocking_s > 0) reasons.emplace_back("saves that a failure interrupts are lost too");
    return joined(reasons, "failures do not come half way between checkpoints on average in so few of them");
  }

  [[nodiscard]] std::string recovery() const {
    std::vector<std::string> reasons = counted();
    const RecoverySpec& spec = whole_.recovery;
    if (RecoveryPolicyRegistry::get(spec.policy).leaves_out() || spec.shrink_when_empty)
      reasons.emplace_back("nodes that come back are taken in by another restart");
    reasons.emplace_back("a failure during recovery starts it over; recovery times are drawn, the formula takes their mean");
    return joined(reasons, "");
  }

  [[nodiscard]] std::string waiting() const {
    return fmt::format(
        "spares run out: the job waits {:.1f} times for nodes, the formula has spares without end; one failure takes up to {} nodes",
        means_.of([](const RunResult& run) { return run.waits; }), most_nodes());
  }

  // Correlated failures: a switch or a rack takes its nodes.
  [[nodiscard]] int most_nodes() const {
    int most = 1;
    const auto& sources = whole_.faults.resolved();
    if (!sources) return most;
    for (const std::string& label : sources.keys()) {
      const auto nodes = sources.at(label).find("nodes");
      if (nodes) most = std::max(most, static_cast<int>(nodes->as_int(1, INT32_MAX)));
    }
    return most;
  }

  [[nodiscard]] std::string degraded() const {
    std::vector<std::string> reasons;
    if (const double slow = means_.of([](const RunResult& run) { return run.slow; }); slow > 0)
      reasons.push_back(fmt::format("something is slow {:.1f} times", slow));
    if (const double resized = means_.of([](const RunResult& run) { return run.resized; }); resized > 0)
      reasons.push_back(fmt::format("the number of replicas changes {:.1f} times", resized));
    if (whole_.checkpoint.async && whole_.checkpoint.slowdown > 1) {
      reasons.push_back(fmt::format("steps take {} times as long during a background write", whole_.checkpoint.slowdown));
    }
    return joined(reasons, "") + (reasons.empty() ? "" : "; the formula knows one step time");
  }

  const WholeJobPlan& plan_;
  const WholeJob& whole_;
  const FormulaInput& input_;
  const FormulaResult& formula_;
  Means means_;
  std::vector<EttrDifference> all_;
};

}  // namespace

std::vector<EttrDifference> differences_of(const WholeJobReport& report) { return Explainer(report).all(); }

}  // namespace rehearse::sim
