#include "sim/report/rank_traces.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/report/gzip.hpp"

namespace rehearse::sim {
namespace {

constexpr int host_pid = 100000;  // + rank: as high as no GPU's
constexpr int host_tid = 1;

using Steps = std::vector<RankTraces::Step>;

Steps steps_of_nothing(const Timeline& timeline) { return Steps(std::max<std::size_t>(timeline.steps_s.size(), 1) - 1); }

std::vector<Steps> steps_of(const Timeline& timeline) {
  std::vector<Steps> steps(timeline.ranks.size(), steps_of_nothing(timeline));
  for (std::uint32_t i = 0; i < timeline.events.size(); ++i) {
    const TimelineEvent& event = timeline.events[i];
    const auto next = std::upper_bound(timeline.steps_s.begin() + 1, timeline.steps_s.end() - 1, event.start_s);
    RankTraces::Step& step = steps[event.rank][static_cast<std::size_t>(next - timeline.steps_s.begin()) - 1];
    (on_gpu(timeline, event) ? step.on_gpu : step.on_host).push_back(i);
  }
  const long long each_ns = nanoseconds(timeline.issue_s + timeline.launch_s);
  for (Steps& rank : steps) {
    for (std::size_t i = 0; i < rank.size(); ++i) {
      std::vector<long long> starts_ns;
      for (const std::uint32_t event : rank[i].on_gpu) starts_ns.push_back(nanoseconds(timeline.events[event].start_s));
      rank[i].launches = host_launches(starts_ns, each_ns, nanoseconds(timeline.steps_s[i]), nanoseconds(timeline.steps_s[i + 1]));
    }
  }
  return steps;
}

long long lead_ns(const std::vector<Steps>& ranks) {
  long long lead = 0;
  for (const Steps& steps : ranks) {
    for (const RankTraces::Step& step : steps) lead = std::max(lead, step.launches.lead_ns);
  }
  return lead;
}

// One rank's file.
class RankTrace {
 public:
  RankTrace(const Timeline& timeline, const TraceEvents& events, std::size_t rank, const Steps& steps, std::ostream& out)
      : timeline_(timeline),
        events_(events),
        pid_(timeline.ranks[rank].rank),
        driver_share_(timeline.launch_s > 0 ? timeline.launch_s / (timeline.issue_s + timeline.launch_s) : 0),
        seq_(events.groups().size()),
        text_(out) {
    events_.write_head(text_, fmt::format("rank{}.json", pid_), pid_);
    write_tracks(rank, steps);
    for (std::size_t i = 0; i < steps.size(); ++i) write_step(i, steps[i]);
    events_.write_memory(text_, rank);
    events_.write_instants(text_, rank);
    TraceEvents::write_tail(text_);
  }

 private:
  void write_tracks(std::size_t rank, const Steps& steps) {
    std::vector<bool> used(timeline_.streams.size());
    for (const RankTraces::Step& step : steps) {
      for (const auto* events : {&step.on_gpu, &step.on_host}) {
        for (const std::uint32_t event : *events) used[timeline_.events[event].stream] = true;
      }
    }
    used[0] = true;  // the steps are written there
    events_.write_tracks(text_, rank, used);
    text_.label("process_name", host(), 0, "name", "\"host\"");
    text_.label("process_labels", host(), 0, "labels", "\"CPU\"");
    text_.label("process_sort_index", host(), 0, "sort_index", "-1");
    text_.label("thread_name", host(), host_tid, "name", "\"launches\"");
  }

  void write_step(std::size_t number, const RankTraces::Step& step) {
    const long long from_ns = nanoseconds(timeline_.steps_s[number]);
    const long long to_ns = nanoseconds(timeline_.steps_s[number + 1]);
    const std::string name = fmt::format("\"ProfilerStep#{}\"", number);
    write_slice("user_annotation", name, host(), host_tid, trace_span(from_ns, to_ns)) << "}";
    write_slice("gpu_user_annotation", name, pid_, thread_of(0), trace_span(events_.shift_ns() + from_ns, events_.shift_ns() + to_ns))
        << "}";
    for (std::size_t i = 0; i < step.on_gpu.size(); ++i) write_launched(step.on_gpu[i], step.launches.starts_ns[i], step.launches.each_ns);
    for (const std::uint32_t event : step.on_host) events_.write_operation(text_, event);
  }

  TraceText& write_slice(std::string_view category, std::string_view name, int pid, int tid, const TraceSpan& span) {
    text_.next_event() << R"({"ph":"X","cat":")" << category << R"(","name":)" << name << R"(,"pid":)" << pid << R"(,"tid":)" << tid
                       << R"(,"ts":)";
    text_.microseconds(span.start_ns) << R"(,"dur":)";
    return text_.microseconds(span.duration_ns);
  }

  // The framework's operation, in it at its end the driver's call, the arrow to what it launches, and that.
  void write_launched(std::uint32_t index, long long start_ns, long long each_ns) {
    const TimelineEvent& event = timeline_.events[index];
    const long long id = static_cast<long long>(index) + 1;
    const long long end_ns = start_ns + each_ns;
    const TraceSpan call = trace_span(end_ns - std::llround(static_cast<double>(each_ns) * driver_share_), end_ns, 2);
    write_slice("cpu_op", json_text(event.name), host(), host_tid, trace_span(start_ns, end_ns, 1))
        << R"(,"args":{"External id":)" << id << "}}";
    write_slice("cuda_runtime", on_copy_stream(timeline_, event) ? R"("cudaMemcpyAsync")" : R"("cudaLaunchKernel")", host(), host_tid, call)
        << R"(,"args":{"External id":)" << id << R"(,"correlation":)" << id << "}}";
    write_arrow_end("s", id, host(), host_tid, call.start_ns, "");
    write_arrow_end("f", id, pid_, thread_of(event.stream), events_.span_of(event).start_ns, R"(,"bp":"e")");
    events_.write_operation(text_, index, fmt::format(R"(,"External id":{}{})", id, seq_of(event)));
  }

  void write_arrow_end(std::string_view ph, long long id, int pid, int tid, long long ns, std::string_view more) {
    text_.next_event() << R"({"ph":")" << ph << R"(","cat":"ac2g","name":"ac2g","id":)" << id << R"(,"pid":)" << pid << R"(,"tid":)" << tid
                       << R"(,"ts":)";
    text_.microseconds(ns) << more << "}";
  }

  // The how many-th of its process group's on this rank it is: by that readers find the same collective of other ranks.
  std::string seq_of(const TimelineEvent& event) {
    const int group = event.collective < 0 ? -1 : events_.groups().number_of(static_cast<std::size_t>(event.collective));
    return group < 0 ? "" : fmt::format(R"(,"Seq":{})", ++seq_[static_cast<std::size_t>(group)]);
  }

  [[nodiscard]] int host() const { return host_pid + pid_; }

  const Timeline& timeline_;
  const TraceEvents& events_;
  int pid_;
  double driver_share_;         // of the time that the host takes to issue an operation
  std::vector<long long> seq_;  // [process group]
  TraceText text_;
};

}  // namespace

RankTraces::RankTraces(const JobSummary& job, const Timeline& timeline)
    : timeline_(timeline), steps_(steps_of(timeline)), events_(job, timeline, lead_ns(steps_), true, 1) {}

std::vector<OutputFolder::File> RankTraces::files(bool packed) const {
  std::vector<OutputFolder::File> files;
  for (std::size_t rank = 0; rank < timeline_.ranks.size(); ++rank) {
    files.push_back(
        {fmt::format("rank{}.json{}", timeline_.ranks[rank].rank, packed ? ".gz" : ""), [this, rank, packed](std::ostream& out) {
           if (!packed) return write(rank, out);
           GzipStream gzip(out);
           write(rank, gzip);
           gzip.finish();
         }});
  }
  return files;
}

void RankTraces::write(std::size_t rank, std::ostream& out) const { RankTrace(timeline_, events_, rank, steps_[rank], out); }

}  // namespace rehearse::sim
