#include "sim/engine/step_events.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <tuple>

#include "sim/engine/memory_over_time.hpp"

namespace rehearse::sim {
namespace {

using workloads::Op;
using workloads::OpId;
using workloads::OpKind;
using workloads::RankBlock;
using workloads::StepGraph;

bool lasts(const StepGraph& graph, const Execution& run, OpId id) { return run.end_s[id] > run.start_s(graph, id); }

double length_of(const Execution& run) { return *std::ranges::max_element(run.end_s); }

auto place_of(const TimelineEvent& event) { return std::tuple(event.start_s, event.rank, event.stream); }

}  // namespace

// Where the walk along a rank's stream has come to.
struct StepEvents::Cursor {
  double start_s = 0;  // since the first of the part's executions began
  std::uint32_t rank = 0;
  std::uint8_t stream = 0;
  OpId first = 0;  // of the rank
  const Places* places = nullptr;
  std::size_t at = 0;  // in places

  [[nodiscard]] OpId id() const { return first + (*places)[at]; }
  // From here on to an operation that lasts; false where there is none.
  bool settle(const StepGraph& graph, const Execution& run, double begins_s) {
    while (at < places->size() && !lasts(graph, run, id())) ++at;
    if (at < places->size()) start_s = begins_s + run.start_s(graph, id());
    return at < places->size();
  }
  [[nodiscard]] auto place() const { return std::tuple(start_s, rank, stream); }
};

std::vector<double> StepEvents::add(std::shared_ptr<const PreparedStep> prepared, std::vector<Execution> executions,
                                    std::int32_t first_collective) {
  Part part{std::move(prepared), std::move(executions), {}, first_collective, {}, nullptr};
  std::vector<double> steps_s{parts_.empty() ? 0 : parts_.back().begins_s.back() + length_of(parts_.back().executions.back())};
  for (const Execution& run : part.executions) steps_s.push_back(steps_s.back() + length_of(run));
  part.begins_s.assign(steps_s.begin(), steps_s.end() - 1);
  part.allocations = std::make_unique<workloads::StepAllocations>(allocations_of(*part.prepared));
  put(std::move(part));
  return steps_s;
}

void StepEvents::add(std::shared_ptr<const PreparedStep> prepared, FailedStep failed) {
  hung_ = std::move(failed.hung);
  cut_ = std::move(failed.cut);
  Part part{std::move(prepared), {}, {0}, 0, {}, nullptr};
  part.executions.push_back(std::move(failed.drawn));
  for (const HungReceive& receive : failed.receives) add_receive(part, receive, failed.aftermath.detected_s);
  std::ranges::stable_sort(receives_, {}, place_of);
  put(std::move(part));
}

void StepEvents::add_receive(const Part& part, const HungReceive& receive, double until_s) {
  const StepGraph& graph = part.prepared->graph;
  const Op op = graph.op(receive.message);
  TimelineEvent event;
  event.name = names_.emplace_back(fmt::format("recv {}", graph.labels[op.label]));
  event.rank = receive.rank;
  event.stream = static_cast<std::uint8_t>(op.stream);
  event.phase = op.phase;
  event.start_s = receive.since_s;
  event.end_s = until_s;
  event.microbatch = op.microbatch;
  event.chunk = op.chunk;
  event.end = TimelineEvent::End::hung;
  receives_.push_back(event);
}

void StepEvents::put(Part part) {
  const StepGraph& graph = part.prepared->graph;
  for (const RankBlock& block : graph.blocks()) {
    part.tracks.resize(std::max(part.tracks.size(), block.program + std::size_t{1}));
    Tracks& tracks = part.tracks[block.program];
    if (!tracks.empty()) continue;
    std::vector<Places> of_stream(workloads::stream_count);
    const std::vector<Op>& ops = graph.program(block).ops;
    for (std::uint32_t at = 0; at < ops.size(); ++at) of_stream[static_cast<std::size_t>(ops[at].stream)].push_back(at);
    for (std::size_t stream = 0; stream < of_stream.size(); ++stream) {
      if (!of_stream[stream].empty()) tracks.emplace_back(static_cast<std::uint8_t>(stream), std::move(of_stream[stream]));
    }
  }
  parts_.push_back(std::move(part));
}

double StepEvents::last_end_s() const {
  double last_s = 0;
  for (const Part& part : parts_) {
    for (std::size_t i = 0; i < part.executions.size(); ++i) {
      const Execution& run = part.executions[i];
      for (OpId id = 0; id < run.end_s.size(); ++id) {
        if (lasts(part.prepared->graph, run, id)) last_s = std::max(last_s, part.begins_s[i] + run.end_s[id]);
      }
    }
  }
  for (const TimelineEvent& event : receives_) last_s = std::max(last_s, event.end_s);
  return last_s;
}

TimelineEvent StepEvents::event_of(const Part& part, std::size_t execution, OpId id) const {
  const StepGraph& graph = part.prepared->graph;
  const Execution& run = part.executions[execution];
  const Op op = graph.op(id);
  TimelineEvent event;
  event.name = graph.labels[op.label];
  event.rank = op.rank;
  event.stream = static_cast<std::uint8_t>(op.stream);
  event.phase = op.phase;
  event.start_s = part.begins_s[execution] + run.start_s(id, op);
  event.end_s = part.begins_s[execution] + run.end_s[id];
  event.microbatch = op.microbatch;
  event.chunk = op.chunk;
  event.layer = op.layer;
  if (op.kind != OpKind::compute) event.collective = part.first_collective + static_cast<std::int32_t>(op.item);
  if (!hung_.empty() && hung_[id]) event.end = TimelineEvent::End::hung;
  if (!cut_.empty() && cut_[id]) event.end = TimelineEvent::End::cut;
  return event;
}

void StepEvents::add_cursors(const Part& part, std::size_t execution, std::uint32_t rank, std::vector<Cursor>& cursors) {
  const RankBlock& block = part.prepared->graph.blocks()[rank];
  for (const auto& [stream, places] : part.tracks[block.program]) {
    Cursor cursor{0, rank, stream, block.first, &places, 0};
    if (cursor.settle(part.prepared->graph, part.executions[execution], part.begins_s[execution] - part.begins_s.front()))
      cursors.push_back(cursor);
  }
}

void StepEvents::merge(const Part& part, std::size_t execution, std::vector<Cursor> cursors, const std::vector<TimelineEvent>& receives,
                       const Visit& visit) const {
  const Execution& run = part.executions[execution];
  constexpr std::greater<> later;  // the earliest is on top of the heap
  auto receive = receives.begin();
  std::ranges::make_heap(cursors, later, &Cursor::place);
  while (!cursors.empty()) {
    std::ranges::pop_heap(cursors, later, &Cursor::place);
    Cursor& next = cursors.back();
    const TimelineEvent event = event_of(part, execution, next.id());
    for (; receive != receives.end() && place_of(*receive) < place_of(event); ++receive) visit(*receive);
    visit(event);
    ++next.at;
    if (next.settle(part.prepared->graph, run, part.begins_s[execution] - part.begins_s.front())) {
      std::ranges::push_heap(cursors, later, &Cursor::place);
    } else {
      cursors.pop_back();
    }
  }
  std::for_each(receive, receives.end(), visit);
}

void StepEvents::each(const Visit& visit) const {
  for (const Part& part : parts_) {
    for (std::size_t i = 0; i < part.executions.size(); ++i) {
      std::vector<Cursor> cursors;
      for (std::uint32_t rank = 0; rank < part.prepared->graph.ranks.size(); ++rank) add_cursors(part, i, rank, cursors);
      merge(part, i, std::move(cursors), receives_, visit);
    }
  }
}

void StepEvents::each_of(std::uint32_t rank, const Visit& visit) const {
  std::vector<TimelineEvent> receives;
  std::ranges::copy_if(receives_, std::back_inserter(receives), [&](const TimelineEvent& event) { return event.rank == rank; });
  for (const Part& part : parts_) {
    for (std::size_t i = 0; i < part.executions.size(); ++i) {
      std::vector<Cursor> cursors;
      add_cursors(part, i, rank, cursors);
      merge(part, i, std::move(cursors), receives, visit);
    }
  }
}

// From a pipeline message to what it releases on the receiving rank.
void StepEvents::each_arrow(const VisitArrow& visit) const {
  for (const Part& part : parts_) {
    const StepGraph& graph = part.prepared->graph;
    for (std::size_t i = 0; i < part.executions.size(); ++i) {
      for (OpId id = 0; id < graph.size(); ++id) {
        const Op op = graph.op(id);
        if (op.kind != OpKind::p2p || !lasts(graph, part.executions[i], id)) continue;
        for (const OpId next : graph.successors_of(id)) {
          if (graph.op(next).rank != op.rank && lasts(graph, part.executions[i], next))
            visit(event_of(part, i, id), event_of(part, i, next));
        }
      }
    }
  }
}

std::vector<MemorySample> StepEvents::memory_of(std::uint32_t rank) const {
  std::vector<MemorySample> samples;
  for (const Part& part : parts_) {
    if (part.allocations == nullptr) return {};
    add_memory_over_time(*part.prepared, part.allocations->of(rank), part.executions, part.begins_s, samples);
  }
  return samples;
}

}  // namespace rehearse::sim
