#include "sim/report/rank_traces.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/report/gzip.hpp"
#include "sim/report/json_text.hpp"

namespace rehearse::sim {
namespace {

constexpr int host_pid = 100000;  // + rank: as high as no GPU's
constexpr int host_tid = 1;

using Steps = std::vector<RankTraces::Step>;

std::vector<std::vector<std::uint32_t>> places_by_rank(const Timeline& timeline) {
  std::vector<std::vector<std::uint32_t>> places(timeline.ranks.size());
  std::uint32_t place = 0;
  timeline.events->each([&](const TimelineEvent& event) { places[event.rank].push_back(place++); });
  return places;
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
      for (const auto* operations : {&step.on_gpu, &step.on_host}) {
        for (const RankTraces::Operation& operation : *operations) used[operation.event.stream] = true;
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
    for (const RankTraces::Operation& operation : step.on_host) events_.write_operation(text_, operation.event, operation.place);
  }

  TraceText& write_slice(std::string_view category, std::string_view name, int pid, int tid, const TraceSpan& span) {
    text_.next_event() << R"({"ph":"X","cat":")" << category << R"(","name":)" << name << R"(,"pid":)" << pid << R"(,"tid":)" << tid
                       << R"(,"ts":)";
    text_.microseconds(span.start_ns) << R"(,"dur":)";
    return text_.microseconds(span.duration_ns);
  }

  // The framework's operation, in it at its end the driver's call, the arrow to what it launches, and that.
  void write_launched(const RankTraces::Operation& operation, long long start_ns, long long each_ns) {
    const TimelineEvent& event = operation.event;
    const long long id = static_cast<long long>(operation.place) + 1;
    const long long end_ns = start_ns + each_ns;
    const TraceSpan call = trace_span(end_ns - std::llround(static_cast<double>(each_ns) * driver_share_), end_ns, 2);
    write_slice("cpu_op", json_text(event.name), host(), host_tid, trace_span(start_ns, end_ns, 1))
        << R"(,"args":{"External id":)" << id << "}}";
    write_slice("cuda_runtime", on_copy_stream(timeline_, event) ? R"("cudaMemcpyAsync")" : R"("cudaLaunchKernel")", host(), host_tid, call)
        << R"(,"args":{"External id":)" << id << R"(,"correlation":)" << id << "}}";
    write_arrow_end("s", id, host(), host_tid, call.start_ns, "");
    write_arrow_end("f", id, pid_, thread_of(event.stream), events_.span_of(event).start_ns, R"(,"bp":"e")");
    events_.write_operation(text_, event, operation.place, fmt::format(R"(,"External id":{}{})", id, seq_of(event)));
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
    : timeline_(timeline), places_(places_by_rank(timeline)), events_(job, timeline, lead_ns(), true, 1) {}

std::vector<RankTraces::Step> RankTraces::steps_of(std::uint32_t rank) const {
  const std::vector<double>& begins_s = timeline_.steps_s;
  std::vector<Step> steps(std::max<std::size_t>(begins_s.size(), 1) - 1);
  auto place = places_[rank].begin();
  timeline_.events->each_of(rank, [&](const TimelineEvent& event) {
    const auto next = std::upper_bound(begins_s.begin() + 1, begins_s.end() - 1, event.start_s);
    Step& step = steps[static_cast<std::size_t>(next - begins_s.begin()) - 1];
    (on_gpu(timeline_, event) ? step.on_gpu : step.on_host).push_back({event, *place++});
  });
  const long long each_ns = nanoseconds(timeline_.issue_s + timeline_.launch_s);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    std::vector<long long> starts_ns;
    for (const Operation& operation : steps[i].on_gpu) starts_ns.push_back(nanoseconds(operation.event.start_s));
    steps[i].launches = host_launches(starts_ns, each_ns, nanoseconds(begins_s[i]), nanoseconds(begins_s[i + 1]));
  }
  return steps;
}

long long RankTraces::lead_ns() const {
  long long lead = 0;
  for (std::uint32_t rank = 0; rank < timeline_.ranks.size(); ++rank) {
    for (const Step& step : steps_of(rank)) lead = std::max(lead, step.launches.lead_ns);
  }
  return lead;
}

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

void RankTraces::write(std::size_t rank, std::ostream& out) const {
  RankTrace(timeline_, events_, rank, steps_of(static_cast<std::uint32_t>(rank)), out);
}

}  // namespace rehearse::sim
