// timeline.json: the Chrome trace event format, for ui.perfetto.dev. A process per instance: its passes, the caches that it hands over with
// arrows to where they go, counters of its cache and its requests.
#include <algorithm>
#include <map>
#include <set>

#include "sim/report/json_text.hpp"
#include "sim/report/reporter.hpp"
#include "sim/report/trace_events.hpp"
#include "sim/report/trace_text.hpp"
#include "sim/serving/serving_report.hpp"

namespace rehearse::sim {
namespace {

constexpr int pass_thread = 1, first_hand_over_thread = 2;

std::string_view name_of(const PassRun& run) {
  if (run.prompts == 0) return "decode";
  return run.sequences == 0 ? "prefill" : "prefill + decode";
}

class ServiceTrace {
 public:
  ServiceTrace(const Report& report, std::ostream& out)
      : record_(*recorded(report)),
        followed_(report.get<ServingReport>().run->followed),
        instances_(instances_of(report.get<ServingReport>())),
        with_args_(!report.has<TraceStyle>() || report.get<TraceStyle>().with_args),
        text_(out) {
    text_.append(R"({{"displayTimeUnit":"ms","otherData":{{"job":{},"slices":{}}},"traceEvents":[)", json_text(report.job.name),
                 json_text(extent()));
    write_tracks();
    for (const PassSlice& slice : record_.pass_slices()) write_passes(slice);
    for (const HandOverSlice& slice : record_.hand_over_slices()) write_hand_over(slice);
    write_followed();
    for (const Outage& outage : record_.outages()) write_outage(outage);
    for (std::size_t i = 0; i < instances_.size(); ++i) write_counters(i);
    text_ << "\n]}\n";
    text_.flush();
  }

 private:
  static int pid_of(std::size_t instance) { return static_cast<int>(instance) + 1; }

  [[nodiscard]] std::string extent() const {
    const std::string until =
        fmt::format("from {:.6g} s until {:.6g} s of {:.6g} s", record_.slices_from_s(), record_.slices_until_s(), record_.end_s());
    return record_.is_cut() ? fmt::format("{}, where there were {} of them", until, ServiceRecord::most_slices) : until;
  }

  void write_tracks() {
    std::set<std::pair<std::size_t, std::size_t>> used;
    for (const HandOverSlice& slice : record_.hand_over_slices()) used.emplace(slice.from, slice.track);
    for (std::size_t i = 0; i < instances_.size(); ++i) {
      text_.label("process_name", pid_of(i), 0, "name", json_text(instances_[i].name));
      text_.label("process_sort_index", pid_of(i), 0, "sort_index", fmt::format("{}", i));
      text_.label("thread_name", pid_of(i), pass_thread, "name", "\"passes\"");
    }
    for (const auto& [instance, track] : used) {
      text_.label("thread_name", pid_of(instance), first_hand_over_thread + static_cast<int>(track), "name",
                  fmt::format("\"hand-overs {}\"", track + 1));
    }
  }

  void begin_slice(std::size_t instance, int thread, std::string_view name, double start_s, double end_s) {
    const TraceSpan span = trace_span(nanoseconds(start_s), nanoseconds(end_s));
    text_.next_event().append(R"({{"ph":"X","name":"{}","pid":{},"tid":{},"ts":)", name, pid_of(instance), thread);
    text_.microseconds(span.start_ns) << R"(,"dur":)";
    text_.microseconds(span.duration_ns);
  }

  void write_passes(const PassSlice& slice) {
    const PassRun& run = slice.run;
    begin_slice(slice.instance, pass_thread, name_of(run), slice.start_s, slice.end_s);
    if (with_args_) {
      text_.append(R"(,"args":{{"passes":{},"sequences":{},"prompts":{},"prompt tokens":{}{}}})", run.passes, run.sequences, run.prompts,
                   run.prompt_tokens, slice.cut ? R"(,"end":"failed")" : "");
    }
    text_ << "}";
  }

  void write_hand_over(const HandOverSlice& slice) {
    const int thread = first_hand_over_thread + static_cast<int>(slice.track);
    begin_slice(slice.from, thread, "hand-over", slice.start_s, slice.end_s);
    if (with_args_) {
      text_.append(R"(,"args":{{"request":{},"to":{},"bytes":{:.0f}{}}})", slice.request, json_text(instances_[slice.to].name), slice.bytes,
                   slice.arrived ? "" : R"(,"end":"given up")");
    }
    text_ << "}";
    if (!slice.arrived) return;
    // An arrow belongs to the slice open at its time; at the very end of a slice none is open any more.
    const long long start_ns = nanoseconds(slice.start_s), end_ns = nanoseconds(slice.end_s);
    write_arrow_end("s", slice.from, thread, std::max(start_ns, end_ns - 1), "");
    write_arrow_end("f", slice.to, pass_thread, end_ns, R"(,"bp":"e")");
    ++arrows_;
  }

  void write_arrow_end(std::string_view ph, std::size_t instance, int thread, long long ns, std::string_view more) {
    text_.next_event().append(R"({{"ph":"{}","cat":"kv","name":"cache","id":{},"pid":{},"tid":{},"ts":)", ph, arrows_, pid_of(instance),
                              thread);
    text_.microseconds(ns) << more << "}";
  }

  // A process beside the instances, with a thread for each.
  void write_followed() {
    if (followed_.empty()) return;
    const std::size_t beside = instances_.size();
    text_.label("process_name", pid_of(beside), 0, "name", "\"requests\"");
    text_.label("process_sort_index", pid_of(beside), 0, "sort_index", fmt::format("{}", beside));
    int thread = 0;
    for (const auto& [id, spans] : followed_) {
      text_.label("thread_name", pid_of(beside), ++thread, "name", fmt::format("\"request {}\"", id));
      for (const StageSpan& span : spans) {
        begin_slice(beside, thread, sim::name_of(span.stage), span.start_s, span.end_s);
        text_ << "}";
      }
    }
  }

  void write_outage(const Outage& outage) {
    text_.next_event().append(R"({{"ph":"i","s":"p","cat":"failure","name":"{}","pid":{},"tid":{},"ts":)",
                              outage.fails ? "fails" : "is back", pid_of(outage.instance), pass_thread);
    text_.microseconds(nanoseconds(outage.at_s)) << "}";
  }

  // Means over the rows of occupancy.csv.
  void write_counters(std::size_t instance) {
    const LevelSeries& series = record_.levels()[instance];
    for (std::size_t row = 0; row < series.rows().size(); ++row) {
      const double from_s = series.row_s() * static_cast<double>(row), seconds = std::min(series.end_s() - from_s, series.row_s());
      if (!(seconds > 0)) continue;
      const auto mean = [&](Level level) { return series.rows()[row].area[static_cast<std::size_t>(level)] / seconds; };
      begin_counter(instance, "cache", from_s).append(R"({{"GB":{:.4g}}}}})", mean(Level::pages) * instances_[instance].page_bytes / 1e9);
      begin_counter(instance, "requests", from_s)
          .append(R"({{"running":{:.4g},"waiting":{:.4g},"held":{:.4g}}}}})", mean(Level::running), mean(Level::waiting),
                  mean(Level::held));
    }
  }

  TraceText& begin_counter(std::size_t instance, std::string_view name, double at_s) {
    text_.next_event().append(R"({{"ph":"C","name":"{}","pid":{},"ts":)", name, pid_of(instance));
    return text_.microseconds(nanoseconds(at_s)) << R"(,"args":)";
  }

  const ServiceRecord& record_;
  const std::map<RequestId, std::vector<StageSpan>>& followed_;
  std::vector<RecordedInstance> instances_;
  bool with_args_;
  TraceText text_;
  long long arrows_ = 1;
};

class ServiceTimeline final : public Reporter {
 public:
  [[nodiscard]] std::string_view file_name() const override { return "timeline.json"; }
  [[nodiscard]] bool applies(const Report& report) const override { return recorded(report) != nullptr; }
  void write(const Report& report, std::ostream& out) const override { ServiceTrace(report, out); }
};

const ReporterRegistry::Registration<ServiceTimeline> service_timeline_registration("serving-timeline");

}  // namespace
}  // namespace rehearse::sim
