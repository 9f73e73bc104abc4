#include "sim/engine/timeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "sim/engine/memory_over_time.hpp"

namespace rehearse::sim {
namespace {

using workloads::CollectiveKind;
using workloads::Op;
using workloads::OpId;
using workloads::OpKind;
using workloads::StepGraph;

// PyTorch's names of collectives in Kineto traces, and CUPTI's of copies; what the host's processors do for themselves has none.
std::string_view kineto_name(const workloads::Communication& what) {
  if (what.group == workloads::GroupKind::to_host) return "Memcpy DtoH (Device -> Pinned)";
  if (what.group == workloads::GroupKind::from_host) return "Memcpy HtoD (Pinned -> Device)";
  if (what.group == workloads::GroupKind::host_memory) return "";
  switch (what.kind) {
    case CollectiveKind::all_reduce:
      return "allreduce";
    case CollectiveKind::all_gather:
      return "_allgather_base";
    case CollectiveKind::reduce_scatter:
      return "_reduce_scatter_base";
    case CollectiveKind::broadcast:
      return "broadcast";
    case CollectiveKind::all_to_all:
      return "all_to_all";
    case CollectiveKind::send_recv:
      return "send";
  }
  return "";
}

std::string_view torch_name(workloads::DType type) {
  switch (type) {
    case workloads::DType::fp32:
      return "Float";
    case workloads::DType::bf16:
      return "BFloat16";
    case workloads::DType::fp16:
      return "Half";
    case workloads::DType::fp8:
      return "Float8_e4m3fn";
    case workloads::DType::fp4:
      return "Float4";
  }
  return "";
}

class Maker {
 public:
  Maker(const Job& job, const StepGraph& graph, const Prices& prices) : job_(job), graph_(graph) {
    const Software& software = job.system.software;
    timeline_.issue_s = software.replays_graphs ? 0 : software.issue_s;
    timeline_.launch_s = software.replays_graphs ? 0 : job.system.gpu.launch_s;
    timeline_.streams.assign(workloads::stream_names.begin(), workloads::stream_names.end());
    for (const workloads::SimulatedRank& rank : graph.ranks) {
      const int per_node = job.system.cluster.gpus_per_node;
      timeline_.ranks.push_back({rank.rank, rank.stage, rank.multiplicity, rank.rank / per_node, rank.rank % per_node});
    }
    for (const std::string& label : graph.labels) timeline_.names.add(label);
    for (std::size_t i = 0; i < graph.calls.size(); ++i) timeline_.collectives.push_back(collective(graph.calls[i], prices.calls[i]));
  }

  Timeline make(const std::vector<Execution>& steps) {
    double offset = 0;
    for (const Execution& step : steps) {
      timeline_.steps_s.push_back(offset);
      add_step(step, offset);
      offset += *std::ranges::max_element(step.end_s);
    }
    timeline_.steps_s.push_back(offset);
    sort();
    return std::move(timeline_);
  }

  Timeline make(const FailedStep& step, const std::vector<RankFailure>& failures) {
    failed_ = &step;
    add_step(step.drawn, 0);
    for (const HungReceive& receive : step.receives) add_receive(receive);
    for (std::size_t i = 0; i < failures.size(); ++i) {
      timeline_.instants.push_back({"failure: " + step.aftermath.failures[i].what, failures[i].ranks, failures[i].at_s});
      if (failures[i].ports) continue;
      for (const std::uint32_t rank : failures[i].ranks) {
        if (timeline_.ranks[rank].dead_s < 0) timeline_.ranks[rank].dead_s = failures[i].at_s;
      }
    }
    if (step.aftermath.detected) timeline_.instants.push_back({"failure detected", living(), step.aftermath.detected_s});
    timeline_.steps_s = {0, last_end_s()};
    sort();
    return std::move(timeline_);
  }

 private:
  [[nodiscard]] double last_end_s() const {
    double last_s = 0;
    for (const TimelineEvent& event : timeline_.events) last_s = std::max(last_s, event.end_s);
    return last_s;
  }

  [[nodiscard]] std::vector<std::uint32_t> living() const {
    std::vector<std::uint32_t> ranks;
    for (std::uint32_t i = 0; i < timeline_.ranks.size(); ++i) {
      if (timeline_.ranks[i].dead_s < 0) ranks.push_back(i);
    }
    return ranks;
  }

  void add_receive(const HungReceive& receive) {
    const Op op = graph_.op(receive.message);
    TimelineEvent event;
    event.name = timeline_.names.add(fmt::format("recv {}", timeline_.names[op.label]));
    event.rank = receive.rank;
    event.stream = static_cast<std::uint8_t>(op.stream);
    event.phase = op.phase;
    event.start_s = receive.since_s;
    event.end_s = failed_->aftermath.detected_s;
    event.microbatch = op.microbatch;
    event.chunk = op.chunk;
    event.end = TimelineEvent::End::hung;
    timeline_.events.push_back(event);
  }

  [[nodiscard]] TimelineCollective collective(const workloads::Call& call, const CallPrice& price) const {
    const workloads::Group& group = graph_.groups[call.group];
    const bool gradients = call.what.kind == CollectiveKind::reduce_scatter || call.what.kind == CollectiveKind::all_reduce;
    const bool update = call.what.pass == workloads::Pass::update && gradients;
    const workloads::DType type = update ? job_.workload.precision.gradients : job_.workload.precision.weights;
    // What goes in: of an all-gather a rank's own part.
    const double parts = call.what.kind == CollectiveKind::all_gather ? static_cast<double>(group.members.size()) : 1;
    return {.name = std::string(kineto_name(call.what)),
            .group = std::string(workloads::name_of(group.kind)),
            .dtype = std::string(torch_name(type)),
            .bytes = call.what.bytes * call.repeat / parts,
            .group_size = static_cast<int>(group.members.size()),
            .group_ranks = group.members,
            .algorithm = price.algorithm};
  }

  void add_step(const Execution& step, double offset) {
    std::vector<std::uint32_t> event_of(graph_.size(), no_event);
    const auto lasts = [&](OpId id) { return step.end_s[id] > step.start_s[id]; };
    std::size_t events = timeline_.events.size();
    for (OpId id = 0; id < graph_.size(); ++id) events += lasts(id) ? 1 : 0;
    timeline_.events.reserve(events);
    for (OpId id = 0; id < graph_.size(); ++id) {
      if (!lasts(id)) continue;
      const Op op = graph_.op(id);
      event_of[id] = static_cast<std::uint32_t>(timeline_.events.size());
      TimelineEvent event;
      event.name = timeline_.names[op.label];
      event.rank = op.rank;
      event.stream = static_cast<std::uint8_t>(op.stream);
      event.phase = op.phase;
      event.start_s = offset + step.start_s[id];
      event.end_s = offset + step.end_s[id];
      event.microbatch = op.microbatch;
      event.chunk = op.chunk;
      event.layer = op.layer;
      if (op.kind != OpKind::compute) event.collective = static_cast<std::int32_t>(op.item);
      if (failed_ != nullptr && failed_->hung[id]) event.end = TimelineEvent::End::hung;
      if (failed_ != nullptr && failed_->cut[id]) event.end = TimelineEvent::End::cut;
      timeline_.events.push_back(event);
    }
    for (OpId id = 0; id < graph_.size(); ++id) add_arrows(id, event_of);
  }

  // From a pipeline message to what it releases on the receiving rank.
  void add_arrows(OpId id, const std::vector<std::uint32_t>& event_of) {
    if (graph_.op(id).kind != OpKind::p2p || event_of[id] == no_event) return;
    for (const OpId next : graph_.successors_of(id)) {
      if (graph_.op(next).rank != graph_.op(id).rank && event_of[next] != no_event)
        timeline_.flows.push_back({event_of[id], event_of[next]});
    }
  }

  void sort() {
    std::vector<std::uint32_t> order(timeline_.events.size());
    for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    const auto key = [&](std::uint32_t i) {
      const TimelineEvent& e = timeline_.events[i];
      return std::tuple(e.start_s, e.rank, e.stream, i);
    };
    std::ranges::sort(order, {}, key);
    std::vector<std::uint32_t> position(order.size());
    for (std::uint32_t i = 0; i < order.size(); ++i) position[order[i]] = i;
    for (TimelineFlow& flow : timeline_.flows) flow = {position[flow.from], position[flow.to]};
    // In place: the events of a large step are most of what it holds.
    for (std::uint32_t i = 0; i < position.size(); ++i) {
      while (position[i] != i) {
        const std::uint32_t to = position[i];
        std::swap(timeline_.events[i], timeline_.events[to]);
        std::swap(position[i], position[to]);
      }
    }
  }

  static constexpr std::uint32_t no_event = ~std::uint32_t{0};
  const Job& job_;
  const StepGraph& graph_;
  const FailedStep* failed_ = nullptr;
  Timeline timeline_;
};

}  // namespace

Timeline make_timeline(const PreparedStep& prepared, const std::vector<Execution>& executions) {
  Timeline timeline = Maker(prepared.job, prepared.graph, prepared.prices).make(executions);
  timeline.memory = memory_over_time(prepared, executions);
  return timeline;
}

void append(Timeline& timeline, double end_s, const Timeline& next) {
  timeline.steps_s.back() = end_s;
  for (std::size_t i = 1; i < next.steps_s.size(); ++i) timeline.steps_s.push_back(end_s + next.steps_s[i]);
  const auto events = static_cast<std::uint32_t>(timeline.events.size());
  const auto collectives = static_cast<std::int32_t>(timeline.collectives.size());
  std::unordered_map<std::string_view, std::string_view> stored;
  for (const std::string& name : timeline.names) stored.emplace(name, name);
  for (TimelineEvent event : next.events) {
    const auto [it, added] = stored.try_emplace(event.name);
    if (added) it->second = timeline.names.add(event.name);
    event.name = it->second;
    event.start_s += end_s;
    event.end_s += end_s;
    if (event.collective >= 0) event.collective += collectives;
    timeline.events.push_back(event);
  }
  for (const TimelineFlow& flow : next.flows) timeline.flows.push_back({flow.from + events, flow.to + events});
  timeline.collectives.insert(timeline.collectives.end(), next.collectives.begin(), next.collectives.end());
  for (std::size_t rank = 0; rank < next.memory.size(); ++rank) {
    for (MemorySample sample : next.memory[rank]) {
      sample.at_s += end_s;
      std::vector<MemorySample>& samples = timeline.memory[rank];
      if (samples.back().at_s < sample.at_s) samples.push_back(sample);
      samples.back().held = sample.held;
    }
  }
}

Timeline make_timeline(const PreparedStep& prepared, const FailedStep& step, const std::vector<RankFailure>& failures) {
  return Maker(prepared.job, prepared.graph, prepared.prices).make(step, failures);
}

}  // namespace rehearse::sim
