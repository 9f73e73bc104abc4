// timeline.json: the simulated step in the Chrome trace event format as PyTorch's profiler writes it, all ranks in one file for viewers
// (docs/output-formats.md). Written as the events come: a large step has 10^8.
#include <algorithm>
#include <cstdint>
#include <ostream>

#include "sim/report/reporter.hpp"
#include "sim/report/trace_events.hpp"

namespace rehearse::sim {
namespace {

class JointTrace {
 public:
  JointTrace(const Report& report, std::ostream& out)
      : timeline_(report.get<Timeline>()),
        events_(report.job, timeline_, 0, !report.has<TraceStyle>() || report.get<TraceStyle>().with_args),
        text_(out) {
    events_.write_head(text_, "timeline.json", -1);
    write_tracks();
    std::size_t place = 0;
    timeline_.events->each([&](const TimelineEvent& event) { events_.write_operation(text_, event, place++); });
    write_flows();
    for (std::size_t rank = 0; rank < timeline_.ranks.size(); ++rank) {
      events_.write_memory(text_, rank);
      events_.write_instants(text_, rank);
    }
    TraceEvents::write_tail(text_);
  }

 private:
  void write_tracks() {
    for (std::uint32_t rank = 0; rank < timeline_.ranks.size(); ++rank) {
      std::vector<bool> used(timeline_.streams.size());
      timeline_.events->each_of(rank, [&](const TimelineEvent& event) { used.at(event.stream) = true; });
      events_.write_tracks(text_, rank, used);
    }
  }

  void write_flows() {
    std::size_t id = 0;
    timeline_.events->each_arrow([&](const TimelineEvent& from, const TimelineEvent& to) {
      // An arrow belongs to the slice open at its time; at the very end of a slice none is open any more.
      const TraceSpan sent = events_.span_of(from);
      const long long leaves = std::max(sent.start_ns, sent.end_ns() - 1);
      write_arrow_end("s", ++id, from, leaves, "");
      write_arrow_end("f", id, to, std::max(events_.span_of(to).start_ns, leaves), R"(,"bp":"e")");
    });
  }

  void write_arrow_end(std::string_view ph, std::size_t id, const TimelineEvent& event, long long ns, std::string_view more) {
    text_.next_event() << R"({"ph":")" << ph << R"(","cat":"pp","name":"send","id":)" << static_cast<long long>(id) << R"(,"pid":)"
                       << events_.pid_of(event) << R"(,"tid":)" << thread_of(event.stream) << R"(,"ts":)";
    text_.microseconds(ns) << more << "}";
  }

  const Timeline& timeline_;
  TraceEvents events_;
  TraceText text_;
};

class TraceJson final : public Reporter {
 public:
  [[nodiscard]] std::string_view file_name() const override { return "timeline.json"; }
  [[nodiscard]] bool applies(const Report& report) const override { return report.has<Timeline>(); }
  void write(const Report& report, std::ostream& out) const override { JointTrace(report, out); }
};

const ReporterRegistry::Registration<TraceJson> trace_json_registration("trace");

}  // namespace
}  // namespace rehearse::sim
