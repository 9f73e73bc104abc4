#include "sim/compare/reasons.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "config/quantity.hpp"

namespace rehearse::sim {
namespace {

constexpr double negligible = 1e-3;  // of the step

std::string seconds(double s) { return config::human_quantity(s, config::Dimension::time); }
std::string signed_seconds(double s) { return (s < 0 ? "-" : "+") + seconds(std::abs(s)); }

// Longest against shortest stage by the formula's own account of what each computes.
double unevenness(const StepResult& analytic) {
  double least = analytic.step_s, most = 0;
  for (const RankResult& rank : analytic.ranks) {
    const double busy = rank.phases[Phase::compute] + rank.phases[Phase::recompute] + rank.phases[Phase::tp] + rank.phases[Phase::cp];
    least = std::min(least, busy);
    most = std::max(most, busy);
  }
  return most > 0 ? 1 - least / most : 0;
}

class Explainer {
 public:
  Explainer(const Job& job, const Comparison& c)
      : w_(job.workload),
        c_(c),
        uneven_(unevenness(c.analytic)),
        sharing_s_(c.simulated.step_s - c.critical.step_s),
        closed_form_s_(c.critical.step_s - c.analytic.step_s) {}

  [[nodiscard]] std::string phase(const PhaseDifference& d) const {
    const double difference = d.simulated_s - d.analytic_s;
    if (std::abs(difference) < negligible * c_.analytic.step_s) return "";
    switch (d.phase) {
      case Phase::compute:
      case Phase::recompute:
        return "computation is stretched by alpha while communication overlaps it; the formula books that under the communication";
      case Phase::tp:
      case Phase::cp:
        return shared("this group's links also carry other traffic at the same time; the formula gives it the whole port");
      case Phase::pp:
        return pp(difference);
      case Phase::dp:
        return dp();
      case Phase::bubble:
        return bubble();
      case Phase::waiting:
        return "members of a collective arrive at different times; the formula lets them arrive together";
      default:
        return "";
    }
  }

  [[nodiscard]] std::vector<std::string> step() const {
    std::vector<std::pair<double, std::string>> parts;
    const double threshold = negligible * c_.analytic.step_s;
    if (std::abs(sharing_s_) >= threshold) {
      parts.emplace_back(
          sharing_s_,
          "shared links and contention coefficients (simulated against the critical path of the same step, where nothing is shared)");
    }
    if (std::abs(closed_form_s_) >= threshold) {
      parts.emplace_back(closed_form_s_, "closed form against the real order of operations (critical path against analytic)" + causes());
    }
    std::ranges::sort(parts, [](const auto& a, const auto& b) { return std::abs(a.first) > std::abs(b.first); });
    std::vector<std::string> lines;
    for (const auto& [s, text] : parts) lines.push_back(signed_seconds(s) + ": " + text);
    return lines;
  }

 private:
  [[nodiscard]] std::string shared(const char* reason) const {
    return sharing_s_ > 0 ? reason : causes_or("the order of operations hides part of it");
  }

  [[nodiscard]] std::string causes_or(const char* otherwise) const {
    const std::string known = causes();
    return known.empty() ? otherwise : known.substr(2);
  }

  // What the closed form simplifies about this job.
  [[nodiscard]] std::string causes() const {
    std::string text;
    if (w_.parallel.pp > 1 && uneven_ > negligible) {
      text += fmt::format(": stages are uneven by {:.1f} %, and the formula lets one stage set the pace", 100 * uneven_);
    }
    if (w_.parallel.pp > 1 && w_.parallel.vpp > 1)
      text += ": messages between stages are counted as hidden whenever a chunk is longer than they are";
    if (w_.overlap.dp_gradients || w_.overlap.dp_parameters) {
      text += ": exchange between replicas is hidden unit by unit, the formula hides it as a whole";
    }
    return text;
  }

  [[nodiscard]] std::string pp(double difference) const {
    if (difference < 0)
      return "the formula books all that messages add to the step as pp; on the timeline part of it shows as bubble, or is hidden by "
             "uneven stages";
    return shared("messages between stages meet other traffic on the same ports");
  }
  [[nodiscard]] std::string dp() const {
    if (w_.overlap.dp_gradients || w_.overlap.dp_parameters)
      return "what is hidden depends on when each unit's gradients are ready and parameters needed";
    return shared("all groups reduce at once over shared links");
  }
  [[nodiscard]] std::string bubble() const {
    if (w_.parallel.pp == 1) return "idle time between operations that the formula has no term for";
    return causes_or("stages reach their end at different times, and the formula's bubble is what is left of the step");
  }

  const workloads::Workload& w_;
  const Comparison& c_;
  double uneven_, sharing_s_, closed_form_s_;
};

}  // namespace

void explain(const Job& job, Comparison& comparison) {
  const Explainer explainer(job, comparison);
  for (PhaseDifference& d : comparison.phases) d.reason = explainer.phase(d);
  comparison.reasons = explainer.step();
}

}  // namespace rehearse::sim
