#include "sim/report/trace_events.hpp"

#include <algorithm>
#include <cmath>

#include "sim/report/json_text.hpp"

namespace rehearse::sim {
namespace {

std::string_view category_of(std::string_view stream) {
  if (stream == "d2h" || stream == "h2d") return "gpu_memcpy";
  return stream == "host" ? "cpu_op" : "kernel";
}

}  // namespace

std::string rank_name(const TimelineRank& rank) {
  const std::string copies = rank.ranks > 1 ? fmt::format(", x{}", rank.ranks) : "";
  const std::string dead = rank.dead_s >= 0 ? fmt::format(", dead after {:.6g} s", rank.dead_s) : "";
  return fmt::format("rank {} (stage {}, node {}{}{})", rank.rank, rank.stage, rank.node, copies, dead);
}

bool on_gpu(const Timeline& timeline, const TimelineEvent& event) { return category_of(timeline.streams[event.stream]) != "cpu_op"; }

bool on_copy_stream(const Timeline& timeline, const TimelineEvent& event) {
  return category_of(timeline.streams[event.stream]) == "gpu_memcpy";
}

TraceEvents::TraceEvents(const JobSummary& job, const Timeline& timeline, long long shift_ns, bool with_args, int around)
    : job_(job), timeline_(timeline), shift_ns_(shift_ns), with_args_(with_args), around_(around), groups_(timeline.collectives) {
  for (std::size_t i = 0; i < timeline.collectives.size(); ++i) {
    const TimelineCollective& collective = timeline.collectives[i];
    const std::string name = kernel_name(collective);
    kernels_.push_back(
        {name.empty() ? "" : json_text(name), kernel_args(collective, groups_.number_of(i)), is_copy(collective) ? collective.bytes : -1});
  }
  for (const std::string& stream : timeline.streams) categories_.push_back(category_of(stream));
}

// HolisticTraceAnalysis finds the rank by the text "rank": with white space behind it.
void TraceEvents::write_head(TraceText& text, const std::string& name, int rank) const {
  const int first = timeline_.ranks.empty() ? 0 : timeline_.ranks.front().rank;
  text.append(R"({{"schemaVersion":1,"displayTimeUnit":"ms","traceName":{},)", json_text(job_.name + "/" + name));
  text.append(R"("deviceProperties":[{{"id":0,"name":{},"totalGlobalMem":{}}}],)", json_text(job_.gpu),
              std::llround(job_.gpu_memory_bytes));
  text.append(R"("distributedInfo":{{"backend":"nccl","rank": {},"world_size":{},{},"nccl_version":"{}"}},"traceEvents":[)",
              rank < 0 ? first : rank, job_.gpus, groups_.config(rank), nccl_version);
}

void TraceEvents::write_tail(TraceText& text) {
  text << "\n]}\n";
  text.flush();
}

void TraceEvents::write_tracks(TraceText& text, std::size_t rank, const std::vector<bool>& used_streams) const {
  const int pid = timeline_.ranks[rank].rank;
  text.label("process_name", pid, 0, "name", json_text(rank_name(timeline_.ranks[rank])));
  text.label("process_labels", pid, 0, "labels", fmt::format("\"GPU {}\"", timeline_.ranks[rank].gpu_in_node));
  text.label("process_sort_index", pid, 0, "sort_index", fmt::format("{}", rank));
  for (std::size_t stream = 0; stream < timeline_.streams.size(); ++stream) {
    if (!used_streams[stream]) continue;
    text.label("thread_name", pid, thread_of(stream), "name", json_text(timeline_.streams[stream]));
    text.label("thread_sort_index", pid, thread_of(stream), "sort_index", fmt::format("{}", stream));
  }
}

void TraceEvents::write_operation(TraceText& text, const TimelineEvent& event, std::size_t place, const std::string& more) const {
  const Kernel* kernel = event.collective >= 0 ? &kernels_[static_cast<std::size_t>(event.collective)] : nullptr;
  const TraceSpan span = span_of(event);
  text.next_event() << R"({"ph":"X","cat":")" << categories_[event.stream] << R"(","name":)"
                    << (kernel != nullptr && !kernel->name.empty() ? kernel->name : json_text(event.name)) << R"(,"pid":)" << pid_of(event)
                    << R"(,"tid":)" << thread_of(event.stream) << R"(,"ts":)";
  text.microseconds(span.start_ns) << R"(,"dur":)";
  text.microseconds(span.duration_ns);
  if (with_args_) {
    write_args(text, event, span, place + 1);
    text << more << "}";
  }
  text << "}";
}

void TraceEvents::write_args(TraceText& text, const TimelineEvent& event, const TraceSpan& span, std::size_t correlation) const {
  text << R"(,"args":{"phase":")" << name_of(event.phase) << R"(")";
  if (on_gpu(timeline_, event)) {
    text << R"(,"device":)" << timeline_.ranks[event.rank].gpu_in_node << R"(,"context":1,"stream":)" << thread_of(event.stream)
         << R"(,"correlation":)" << static_cast<long long>(correlation);
  }
  if (event.microbatch >= 0) text << R"(,"micro-batch":)" << event.microbatch;
  if (event.chunk >= 0) text << R"(,"chunk":)" << event.chunk;
  if (event.layer >= 0) text << R"(,"layer":)" << event.layer;
  if (event.end != TimelineEvent::End::ended) text.append(R"(,"end":"{}")", event.end == TimelineEvent::End::hung ? "hung" : "cut");
  if (event.collective < 0) return;
  const Kernel& kernel = kernels_[static_cast<std::size_t>(event.collective)];
  text << R"(,"operation":)" << json_text(event.name) << "," << kernel.args;
  if (kernel.bytes >= 0 && span.duration_ns > 0) {
    text.append(R"x(,"memory bandwidth (GB/s)":{:.3f})x", kernel.bytes / static_cast<double>(span.duration_ns));
  }
}

void TraceEvents::write_memory(TraceText& text, std::size_t rank) const {
  for (const MemorySample& sample : timeline_.events->memory_of(static_cast<std::uint32_t>(rank)))
    write_sample(text, timeline_.ranks[rank].rank, sample);
}

void TraceEvents::write_sample(TraceText& text, int pid, const MemorySample& sample) const {
  text.next_event() << R"({"ph":"C","name":"memory","pid":)" << pid << R"(,"ts":)";
  text.microseconds(shift_ns_ + nanoseconds(sample.at_s)) << R"(,"args":{)";
  for (std::size_t i = 0; i < memory_use_count; ++i) {
    text.append(R"({}"{}":{})", i == 0 ? "" : ",", name_of(static_cast<MemoryUse>(i)), std::llround(sample.held.bytes[i]));
  }
  text << "}}";
}

void TraceEvents::write_instants(TraceText& text, std::size_t rank) const {
  for (const TimelineInstant& instant : timeline_.instants) {
    if (std::ranges::find(instant.ranks, rank) == instant.ranks.end()) continue;
    text.next_event().append(R"({{"ph":"i","s":"p","cat":"failure","name":{},"pid":{},"tid":1,"ts":)", json_text(instant.name),
                             timeline_.ranks[rank].rank);
    text.microseconds(shift_ns_ + nanoseconds(instant.at_s)) << "}";
  }
}

}  // namespace rehearse::sim
