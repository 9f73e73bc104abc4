#include "sim/compare/reasons.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "config/quantity.hpp"
#include "workloads/stage_program.hpp"

namespace rehearse::sim {
namespace {

constexpr double negligible = 1e-3;  // of the step
constexpr double noticeable = 1.01;  // of a call's time alone
constexpr const char* stretches_computation =
    "computation beside it is stretched by alpha: the formula books that here, the timeline as computation";

std::string seconds(double s) { return config::human_quantity(s, config::Dimension::time); }
std::string signed_seconds(double s) { return fmt::format("{}{}", s < 0 ? "-" : "+", seconds(std::abs(s))); }

class Explainer {
 public:
  Explainer(const Job& job, const Comparison& c)
      : w_(job.workload),
        c_(c),
        slow_(job.system.simulation.faults.any_slow()),
        rounds_(job.system.simulation.collectives == Fidelity::step),
        closed_form_s_(c.critical.step_s - c.analytic_alone_s),
        sharing_s_(c.simulated.step_s - c.analytic.step_s - closed_form_s_) {}

  [[nodiscard]] std::string phase(const PhaseDifference& d) const {
    const double difference = d.simulated_s - d.analytic_s;
    if (std::abs(difference) < negligible * c_.analytic.step_s) return "";
    switch (d.phase) {
      case Phase::compute:
      case Phase::recompute:
        if (difference < 0 && hot()) return "the formula counts the hottest rank's experts for all; on the timeline the others wait for it";
        return "computation is stretched by alpha while communication overlaps it; the formula books that under the communication";
      case Phase::tp:
      case Phase::cp:
        if (booked_as_computation(difference)) return stretches_computation;
        return shared(workloads::names_of(d.phase).contention);
      case Phase::pp:
        return pp(difference);
      case Phase::dp:
        return dp();
      case Phase::bubble:
        return bubble(difference);
      case Phase::waiting:
        return "members of a collective arrive at different times; the formula lets them arrive together";
      case Phase::ep:
        if (hot())
          return "the formula counts the exchange of the hottest rank in every micro-batch; on the timeline others hide or wait for it";
        if (booked_as_computation(difference)) return stretches_computation;
        return shared("ep");
      case Phase::offload:
        return causes_or("copies share the way to the host and its memory with those of other GPUs");
      case Phase::allocator:
        return "the timeline's fullest rank of a stage is another than the formula's";
      case Phase::optimizer:
        return update(difference);
      case Phase::count:
        break;
    }
    return "";
  }

  [[nodiscard]] std::vector<std::string> step() const {
    std::vector<std::pair<double, std::string>> parts;
    const double threshold = negligible * c_.analytic.step_s;
    if (std::abs(sharing_s_) >= threshold) {
      const double timeline_s = c_.simulated.step_s - c_.critical.step_s, formula_s = c_.analytic.step_s - c_.analytic_alone_s;
      const std::string less = timeline_s >= 0 ? stretched() : formula_s < -threshold ? meets_in_the_mean() : leaves();
      parts.emplace_back(sharing_s_, fmt::format("shared links and contention cost {} on the timeline and {} in the formula (each against "
                                                 "itself without them){}",
                                                 seconds(timeline_s), seconds(formula_s), less));
    }
    if (std::abs(closed_form_s_) >= threshold) {
      parts.emplace_back(closed_form_s_,
                         "closed form against the real order of operations (critical path against the formula, both without contention)" +
                             (causes().empty() ? "" : ": " + causes()));
    }
    std::ranges::sort(parts, [](const auto& a, const auto& b) { return std::abs(a.first) > std::abs(b.first); });
    std::vector<std::string> lines;
    lines.reserve(parts.size());
    for (const auto& [s, text] : parts) lines.push_back(signed_seconds(s) + ": " + text);
    return lines;
  }

 private:
  // Whether some rank's experts get more than others'.
  [[nodiscard]] bool hot() const {
    return c_.analytic.experts && c_.analytic.experts->tokens > noticeable * c_.analytic.experts->mean_tokens;
  }

  [[nodiscard]] std::string leaves() const {
    return "; a price counts a GPU's share of NICs, trunks and ports, which others leave to it on the timeline while they wait" +
           in_rounds();
  }
  [[nodiscard]] static std::string meets_in_the_mean() {
    return "; the formula lets stages meet on NICs and links to the host as often as they are at work there in the mean, while on the "
           "timeline they take turns or keep step";
  }

  [[nodiscard]] std::string in_rounds() const {
    return rounds_ ? ", and adds up the latencies of rounds that partly hide behind bytes" : "";
  }

  // How much longer than alone the calls of a group took in the simulated step.
  [[nodiscard]] double stretch(std::string_view group) const {
    double alone = 0, in_step = 0;
    for (const CollectiveResult& call : c_.simulated.collectives) {
      if (call.group != group) continue;
      alone += static_cast<double>(call.calls) * call.seconds;
      in_step += static_cast<double>(call.calls) * call.in_step_s;
    }
    return alone > 0 ? in_step / alone : 1;
  }

  // The group whose calls lose most of the step to others on the way.
  [[nodiscard]] std::string stretched() const {
    std::map<std::string, double> lost_s;
    for (const CollectiveResult& call : c_.simulated.collectives)
      lost_s[call.group] += static_cast<double>(call.calls) * (call.in_step_s - call.seconds);
    const auto most = std::ranges::max_element(lost_s, {}, [](const auto& group) { return group.second; });
    if (most == lost_s.end() || stretch(most->first) <= noticeable) return "";
    return fmt::format(
        "; calls of {} take {:.2f} times as long as alone, where they meet others on ports, NICs or trunks, or beta slows them",
        most->first, stretch(most->first));
  }

  [[nodiscard]] std::string shared(std::string_view group) const {
    const double factor = stretch(group);
    if (factor > noticeable) {
      return fmt::format(
          "its calls take {:.2f} times as long as alone: they share links with other traffic, or beta slows them; the formula gives them "
          "the whole port",
          factor);
    }
    return causes_or("part of it is hidden by what other ranks are waiting for anyway");
  }

  [[nodiscard]] std::string causes_or(const char* otherwise) const {
    const std::string known = causes();
    return known.empty() ? otherwise : known;
  }

  // What the closed form simplifies about this job.
  [[nodiscard]] std::string causes() const {
    std::vector<std::string> known;
    if (slow_) known.emplace_back("something is slow (simulation.faults), which the formula does not know");
    if (hot()) known.emplace_back("the formula lets every layer wait for its hottest rank; on the timeline some of these waits coincide");
    const workloads::ReplicaSync sync = workloads::replica_sync(w_);
    const bool walked = (w_.parallel.pp == 1 && !w_.offload_activations && !w_.overlap.ep) ||  // unit by unit
                        sync.reduce_each_microbatch || sync.shards_parameters;
    if (w_.overlap.ep)
      known.emplace_back("an overlapped pair is laid out on streams of its own, without the links that its exchanges share");
    if (!walked && (w_.overlap.dp_gradients || w_.overlap.dp_parameters)) {
      known.emplace_back("exchange between replicas is hidden unit by unit, and the formula hides it as a whole");
    }
    return fmt::format("{}", fmt::join(known, "; "));
  }

  [[nodiscard]] double of(Phase phase) const { return c_.simulated.mean[phase] - c_.analytic.mean[phase]; }
  // Whether most of what a communication lacks on the timeline is computation there.
  [[nodiscard]] bool booked_as_computation(double difference) const {
    return difference < 0 && of(Phase::compute) + of(Phase::recompute) > -difference / 2;
  }
  // What one of the two phases has too much, the other has too little.
  [[nodiscard]] bool traded() const { return of(Phase::pp) * of(Phase::bubble) < 0; }

  [[nodiscard]] std::string pp(double difference) const {
    if (traded() && difference > 0) return "ranks that would wait anyway wait for a message in flight: the formula books that as bubble";
    if (traded())
      return "the formula books all that messages add to the step as pp; on the timeline part of it is other stages' work, bubble";
    return shared("pp");
  }
  [[nodiscard]] std::string dp() const {
    const double factor = stretch("dp");
    std::string text;
    if (factor > noticeable) text = fmt::format("its calls take {:.2f} times as long as alone", factor);
    if (w_.overlap.dp_gradients || w_.overlap.dp_parameters) {
      text += text.empty() ? "" : "; ";
      text += "what is hidden depends on when each unit's gradients are ready and its parameters needed";
    }
    return text.empty() ? causes_or("stages end at different times and reduce one after another") : text;
  }
  // The stack's own time counts as optimizer, and gathers of the new weights run beside it.
  [[nodiscard]] std::string update(double difference) const {
    if (w_.overlap.dp_parameters && difference > 0 && of(Phase::dp) < -difference / 2)
      return "the stack's own time is stretched by alpha while weights are gathered beside it; the formula books that under the gathers";
    return causes_or(w_.parallel.pp > 1 ? "stages update shares of different size" : "what others leave of the host's memory");
  }
  [[nodiscard]] std::string bubble(double difference) const {
    if (w_.parallel.pp == 1) return "idle time between operations that the formula has no term for";
    if (traded() && difference < 0) return "part of it is booked as pp on the timeline: a message was in flight";
    return causes_or("stages reach their end at different times, and the formula's bubble is what is left of the step");
  }

  const workloads::Workload& w_;
  const Comparison& c_;
  bool slow_, rounds_;
  double closed_form_s_, sharing_s_;
};

}  // namespace

void explain(const Job& job, Comparison& comparison) {
  const Explainer explainer(job, comparison);
  for (PhaseDifference& d : comparison.phases) d.reason = explainer.phase(d);
  comparison.reasons = explainer.step();
}

}  // namespace rehearse::sim
