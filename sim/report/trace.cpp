// timeline.json: the Chrome trace event format as PyTorch's profiler writes it, for ui.perfetto.dev and tools that read Kineto traces
// (docs/output-formats.md). Written as a stream: a folded step of thousands of GPUs has some 10^5 events.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <ostream>

#include "sim/report/kineto.hpp"
#include "sim/report/reporter.hpp"

namespace rehearse::sim {
namespace {

constexpr std::size_t flush_bytes = 1 << 20;

// Nanoseconds of the trace. Start and end are rounded each on its own, so that events which follow one another still do.
long long nanoseconds(double seconds) { return std::llround(seconds * 1e9); }

// Microseconds with three decimals, the unit of the format.
std::string microseconds(long long ns) { return fmt::format("{}.{:03}", ns / 1000, ns % 1000); }

std::string json_text(std::string_view text) {
  return nlohmann::json(std::string(text)).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string rank_name(const TimelineRank& rank) {
  const std::string copies = rank.ranks > 1 ? fmt::format(", x{}", rank.ranks) : "";
  const std::string dead = rank.dead_s >= 0 ? fmt::format(", dead after {:.6g} s", rank.dead_s) : "";
  return fmt::format("rank {} (stage {}, node {}{}{})", rank.rank, rank.stage, rank.node, copies, dead);
}

// Thread ids start at 1: trace viewers take thread 0 for the idle task.
int thread_of(std::size_t stream) { return static_cast<int>(stream) + 1; }

// What Kineto calls copies between host and device; everything else on a GPU is a kernel.
std::string_view category_of(std::string_view stream) { return stream == "d2h" || stream == "h2d" ? "gpu_memcpy" : "kernel"; }

class TraceWriter {
 public:
  TraceWriter(const Report& report, std::ostream& out) : timeline_(report.get<Timeline>()), out_(out) {
    for (const TimelineCollective& collective : timeline_.collectives) {
      collectives_.push_back({json_text(nccl_kernel_name(collective)), nccl_args(collective)});
    }
    write_head(report.job);
    write_tracks();
    write_events();
    write_flows();
    write_memory();
    write_instants();
    append("\n]}}\n");
    flush();
  }

 private:
  struct Collective {
    std::string name, args;
  };

  template <class... Args>
  void append(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(buffer_), format, std::forward<Args>(args)...);
    if (buffer_.size() > flush_bytes) flush();
  }

  void flush() {
    out_.write(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
    buffer_.clear();
  }

  // Every line of the array but the first is preceded by a comma.
  std::string_view separator() {
    const std::string_view text = first_ ? "\n" : ",\n";
    first_ = false;
    return text;
  }

  void write_head(const JobSummary& job) {
    append(R"({{"schemaVersion":1,"displayTimeUnit":"ms","traceName":{},)", json_text(job.name + "/timeline.json"));
    append(R"("deviceProperties":[{{"id":0,"name":{},"totalGlobalMem":{}}}],)", json_text(job.gpu), std::llround(job.gpu_memory_bytes));
    const int rank = timeline_.ranks.empty() ? 0 : timeline_.ranks.front().rank;
    append(R"("distributedInfo":{{"backend":"nccl","rank":{},"world_size":{}}},"traceEvents":[)", rank, job.gpus);
  }

  void write_label(std::string_view kind, int pid, int tid, std::string_view key, const std::string& value) {
    append(R"({}{{"ph":"M","name":"{}","pid":{},"tid":{},"args":{{"{}":{}}}}})", separator(), kind, pid, tid, key, value);
  }

  void write_tracks() {
    const std::vector<bool> used = used_tracks();
    for (std::size_t i = 0; i < timeline_.ranks.size(); ++i) {
      const int pid = timeline_.ranks[i].rank;
      write_label("process_name", pid, 0, "name", json_text(rank_name(timeline_.ranks[i])));
      write_label("process_sort_index", pid, 0, "sort_index", fmt::format("{}", i));
      for (std::size_t stream = 0; stream < timeline_.streams.size(); ++stream) {
        if (used[i * timeline_.streams.size() + stream]) write_thread(pid, stream);
      }
    }
  }

  void write_thread(int pid, std::size_t stream) {
    write_label("thread_name", pid, thread_of(stream), "name", json_text(timeline_.streams[stream]));
    write_label("thread_sort_index", pid, thread_of(stream), "sort_index", fmt::format("{}", stream));
  }

  [[nodiscard]] std::vector<bool> used_tracks() const {
    std::vector<bool> used(timeline_.ranks.size() * timeline_.streams.size());
    for (const TimelineEvent& event : timeline_.events) used.at(event.rank * timeline_.streams.size() + event.stream) = true;
    return used;
  }

  void write_events() {
    for (std::size_t i = 0; i < timeline_.events.size(); ++i) write_event(timeline_.events[i], i);
  }

  void write_event(const TimelineEvent& event, std::size_t index) {
    const long long start = nanoseconds(event.start_s);
    const bool communicates = event.collective >= 0;
    append(R"({}{{"ph":"X","cat":"{}","name":{},"pid":{},"tid":{},"ts":{},"dur":{},"args":{{"phase":"{}","stream":{},"correlation":{})",
           separator(), category_of(timeline_.streams[event.stream]),
           communicates ? collectives_[static_cast<std::size_t>(event.collective)].name : json_text(event.name), pid_of(event),
           thread_of(event.stream), microseconds(start), microseconds(nanoseconds(event.end_s) - start), name_of(event.phase),
           thread_of(event.stream), index + 1);
    write_place(event);
    if (event.end != TimelineEvent::End::ended) append(R"(,"end":"{}")", event.end == TimelineEvent::End::hung ? "hung" : "cut");
    if (communicates) append(R"(,"operation":{},{})", json_text(event.name), collectives_[static_cast<std::size_t>(event.collective)].args);
    append("}}}}");
  }

  void write_place(const TimelineEvent& event) {
    if (event.microbatch >= 0) append(R"(,"micro-batch":{})", event.microbatch);
    if (event.chunk >= 0) append(R"(,"chunk":{})", event.chunk);
    if (event.layer >= 0) append(R"(,"layer":{})", event.layer);
  }

  void write_flows() {
    for (std::size_t i = 0; i < timeline_.flows.size(); ++i) {
      const TimelineEvent& from = timeline_.events.at(timeline_.flows[i].from);
      const TimelineEvent& to = timeline_.events.at(timeline_.flows[i].to);
      // An arrow belongs to the slice open at its time; at the very end of a slice none is open any more.
      const long long leaves = std::max(nanoseconds(from.start_s), nanoseconds(from.end_s) - 1);
      write_arrow_end("s", i, from, leaves, "");
      write_arrow_end("f", i, to, std::max(nanoseconds(to.start_s), leaves), R"(,"bp":"e")");
    }
  }

  void write_arrow_end(std::string_view ph, std::size_t id, const TimelineEvent& event, long long ns, std::string_view more) {
    append(R"({}{{"ph":"{}","cat":"pp","name":"send","id":{},"pid":{},"tid":{},"ts":{}{}}})", separator(), ph, id + 1, pid_of(event),
           thread_of(event.stream), microseconds(ns), more);
  }

  // A counter track per rank: bytes by use.
  void write_memory() {
    for (std::size_t rank = 0; rank < timeline_.memory.size(); ++rank) {
      for (const MemorySample& sample : timeline_.memory[rank]) write_sample(timeline_.ranks.at(rank).rank, sample);
    }
  }

  void write_sample(int pid, const MemorySample& sample) {
    append(R"({}{{"ph":"C","name":"memory","pid":{},"ts":{},"args":{{)", separator(), pid, microseconds(nanoseconds(sample.at_s)));
    for (std::size_t i = 0; i < memory_use_count; ++i) {
      append(R"({}"{}":{})", i == 0 ? "" : ",", name_of(static_cast<MemoryUse>(i)), std::llround(sample.held.bytes[i]));
    }
    append("}}}}");
  }

  // On every process it concerns.
  void write_instants() {
    for (const TimelineInstant& instant : timeline_.instants) {
      for (const std::uint32_t rank : instant.ranks) {
        append(R"({}{{"ph":"i","s":"p","cat":"failure","name":{},"pid":{},"tid":1,"ts":{}}})", separator(), json_text(instant.name),
               timeline_.ranks.at(rank).rank, microseconds(nanoseconds(instant.at_s)));
      }
    }
  }

  [[nodiscard]] int pid_of(const TimelineEvent& event) const { return timeline_.ranks.at(event.rank).rank; }

  const Timeline& timeline_;
  std::ostream& out_;
  fmt::memory_buffer buffer_;
  std::vector<Collective> collectives_;
  bool first_ = true;
};

class TraceJson final : public Reporter {
 public:
  [[nodiscard]] std::string_view file_name() const override { return "timeline.json"; }
  [[nodiscard]] bool applies(const Report& report) const override { return report.has<Timeline>(); }
  void write(const Report& report, std::ostream& out) const override { TraceWriter(report, out); }
};

const ReporterRegistry::Registration<TraceJson> registration("trace");

}  // namespace
}  // namespace rehearse::sim
