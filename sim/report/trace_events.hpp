// One timeline as Chrome trace events (docs/output-formats.md), for the file of all ranks and for those of single ranks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/report/kineto.hpp"
#include "sim/report/reporter.hpp"
#include "sim/report/trace_text.hpp"
#include "sim/timeline.hpp"

namespace rehearse::sim {

// Thread ids start at 1: trace viewers take thread 0 for the idle task.
[[nodiscard]] inline int thread_of(std::size_t stream) { return static_cast<int>(stream) + 1; }

// The section of a command about how timeline.json is to be written.
struct TraceStyle {
  bool with_args = true;  // operations say what they are
};

[[nodiscard]] std::string rank_name(const TimelineRank& rank);  // "rank 0 (stage 0, node 0, x128)"

// Work of the host's processors is on a stream of its own and no kernel.
[[nodiscard]] bool on_gpu(const Timeline& timeline, const TimelineEvent& event);
[[nodiscard]] bool on_copy_stream(const Timeline& timeline, const TimelineEvent& event);

class TraceEvents {
 public:
  // shift_ns: the GPU's clock in the file is later by so much than on the timeline. with_args: operations say what they are. around: events
  // of the same thread that operations stand in (trace_span).
  TraceEvents(const JobSummary& job, const Timeline& timeline, long long shift_ns = 0, bool with_args = true, int around = 0);

  // The head of a file, up to the "[" of its events. rank: whose file it is; -1: of all, it then carries that of the first.
  void write_head(TraceText& text, const std::string& name, int rank) const;
  static void write_tail(TraceText& text);

  // Labels of a rank's process and of those of its streams that have events.
  void write_tracks(TraceText& text, std::size_t rank, const std::vector<bool>& used_streams) const;
  // place: among the timeline's events, from 0. more: further members of args, each with a comma before it.
  void write_operation(TraceText& text, const TimelineEvent& event, std::size_t place, const std::string& more = "") const;
  // A counter track: bytes by use.
  void write_memory(TraceText& text, std::size_t rank) const;
  void write_instants(TraceText& text, std::size_t rank) const;

  [[nodiscard]] TraceSpan span_of(const TimelineEvent& event) const {
    return trace_span(shift_ns_ + nanoseconds(event.start_s), shift_ns_ + nanoseconds(event.end_s), around_);
  }
  [[nodiscard]] int pid_of(const TimelineEvent& event) const { return timeline_.ranks[event.rank].rank; }
  [[nodiscard]] long long shift_ns() const { return shift_ns_; }
  [[nodiscard]] const ProcessGroups& groups() const { return groups_; }

 private:
  struct Kernel {
    std::string name, args;
    double bytes = -1;  // of a copy
  };
  void write_args(TraceText& text, const TimelineEvent& event, const TraceSpan& span, std::size_t correlation) const;
  void write_sample(TraceText& text, int pid, const MemorySample& sample) const;

  const JobSummary& job_;
  const Timeline& timeline_;
  long long shift_ns_;
  bool with_args_;
  int around_;
  ProcessGroups groups_;
  std::vector<Kernel> kernels_;               // [collective]
  std::vector<std::string_view> categories_;  // [stream], as Kineto calls them
};

}  // namespace rehearse::sim
