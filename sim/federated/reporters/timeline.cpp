// timeline.json: the Chrome trace event format, for ui.perfetto.dev. A track per device, a counter per medium and the server of how many
// are on it.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <ostream>
#include <set>

#include "sim/federated/reporters/text.hpp"
#include "sim/report/json_text.hpp"
#include "sim/report/reporter.hpp"
#include "sim/report/trace_text.hpp"

namespace rehearse::federated {
namespace {

constexpr std::size_t most_tracks = 200, slowest_shown = 100, every = 100;

using sim::json_text;

class TraceWriter {
 public:
  TraceWriter(const RoundSection& section, std::ostream& out) : section_(section), round_(*section.simulated), text_(out) {
    choose_tracks();
  }

  void write() {
    text_.append(R"({{"displayTimeUnit":"ms","otherData":{{"tracks":{},"note":{}}},"traceEvents":[)", json_text(tracks_text()),
                 json_text(not_simulated));
    name_tracks();
    for (const Span& span : round_.spans) {
      if (tracks_.contains(span.device)) event(span.device, phase_names[static_cast<std::size_t>(span.phase)].name, span.from_s, span.to_s);
    }
    const double aggregation_s = round_.result.aggregation_s;
    event(server_track(), "aggregation", round_.result.round_s - aggregation_s, round_.result.round_s);
    for (const auto& [name, phases] : media()) count(name, phases);
    text_ << "\n]}\n";
    text_.flush();
  }

 private:
  [[nodiscard]] std::size_t server_track() const { return section_.job->devices.size(); }
  static int thread_of(std::size_t track) { return static_cast<int>(track) + 1; }

  // Of the simulated devices: all, or the slowest and some of the rest.
  void choose_tracks() {
    std::set<std::size_t> simulated(round_.stands_for.begin(), round_.stands_for.end());
    std::vector<std::size_t> order(simulated.begin(), simulated.end());
    if (order.size() > most_tracks) {
      std::ranges::stable_sort(order, std::ranges::greater{}, [&](std::size_t n) { return round_.result.devices[n].end_s; });
      for (std::size_t i = 0; i < order.size(); ++i) {
        if (i < slowest_shown || i % every == 0) tracks_.insert(order[i]);
      }
    } else {
      tracks_ = std::move(simulated);
    }
    for (const std::size_t n : round_.stands_for) ++copies_[n];
  }

  [[nodiscard]] std::string tracks_text() const {
    const std::size_t devices = section_.job->devices.size();
    if (copies_.size() <= most_tracks) return fmt::format("{} devices, one track for those that are alike", devices);
    return fmt::format("the {} slowest and every {}th of {} devices", slowest_shown, every, devices);
  }

  void name_tracks() {
    const auto name = [&](std::size_t track, const std::string& text) {
      text_.label("thread_name", 1, thread_of(track), "name", json_text(text));
    };
    for (const std::size_t n : tracks_) {
      const std::size_t copies = copies_.at(n);
      const std::string cut = section_.job->cuts[section_.plan.cuts[n]].name;
      name(n, fmt::format("{} (cut {}{})", section_.job->device_name(n), cut, copies > 1 ? fmt::format(", x{}", copies) : ""));
    }
    name(server_track(), "server");
  }

  void event(std::size_t track, std::string_view name, double from_s, double to_s) {
    const sim::TraceSpan span = sim::trace_span(sim::nanoseconds(from_s), sim::nanoseconds(to_s));
    text_.next_event().append(R"({{"ph":"X","pid":1,"tid":{},"name":"{}","ts":)", thread_of(track), name);
    text_.microseconds(span.start_ns) << R"(,"dur":)";
    text_.microseconds(span.duration_ns) << "}";
  }

  [[nodiscard]] std::map<std::string, std::vector<Phase>> media() const {
    if (section_.job->one_band())
      return {{"on the band", {Phase::uplink, Phase::downlink, Phase::model}}, {"on the server", {Phase::server}}};
    return {{"on the uplink", {Phase::uplink}},
            {"on the downlink", {Phase::downlink}},
            {"exchanging models", {Phase::model}},
            {"on the server", {Phase::server}}};
  }

  void count(const std::string& name, const std::vector<Phase>& phases) {
    std::map<double, long> change;
    for (const Span& span : round_.spans) {
      if (std::ranges::find(phases, span.phase) == phases.end()) continue;
      const long copies = static_cast<long>(copies_.at(span.device));
      change[span.from_s] += copies;
      change[span.to_s] -= copies;
    }
    long now = 0;
    for (const auto& [at_s, by] : change) {
      now += by;
      if (by == 0) continue;
      text_.next_event().append(R"({{"ph":"C","pid":1,"name":{},"ts":)", json_text(name));
      text_.microseconds(sim::nanoseconds(at_s)).append(R"(,"args":{{"devices":{}}}}})", now);
    }
  }

  const RoundSection& section_;
  const SimulatedRound& round_;
  sim::TraceText text_;
  std::set<std::size_t> tracks_;
  std::map<std::size_t, std::size_t> copies_;
};

class Timeline final : public sim::Reporter {
 public:
  [[nodiscard]] std::string_view file_name() const override { return "timeline.json"; }
  [[nodiscard]] bool applies(const sim::Report& report) const override {
    const auto* section = report.find<RoundSection>();
    return section != nullptr && section->simulated && !section->simulated->spans.empty();
  }
  void write(const sim::Report& report, std::ostream& out) const override { TraceWriter(report.get<RoundSection>(), out).write(); }
};
const sim::ReporterRegistry::Registration<Timeline> timeline_registration("federated-timeline");

}  // namespace
}  // namespace rehearse::federated
