#include "sim/engine/timeline.hpp"

#include <string>
#include <utility>

#include "sim/engine/step_events.hpp"

namespace rehearse::sim {
namespace {

using workloads::CollectiveKind;

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

// Simple is what all run by whose links list nothing else, unless it is asked for.
std::string known_protocol(const CallPrice& price, const System& system) {
  const topology::ClusterSpec& cluster = system.cluster;
  const bool listed = (price.intra_bytes <= 0 || cluster.intra.ll || cluster.supernode.ll) && (price.inter_bytes <= 0 || cluster.nic.ll);
  const bool asked = system.simulation.protocol == topology::Protocol::simple;
  return listed || asked ? std::string(price.protocol_name()) : "";
}

TimelineCollective collective_of(const PreparedStep& prepared, std::size_t index) {
  const workloads::Call& call = prepared.graph.calls[index];
  const workloads::Group& group = prepared.graph.groups[call.group];
  const workloads::Precision& precision = prepared.job.workload.precision;
  const bool gradients = call.what.kind == CollectiveKind::reduce_scatter || call.what.kind == CollectiveKind::all_reduce;
  const bool update = call.what.pass == workloads::Pass::update && gradients;
  // What goes in: of an all-gather a rank's own part.
  const double parts = call.what.kind == CollectiveKind::all_gather ? static_cast<double>(group.members.size()) : 1;
  return {.name = std::string(kineto_name(call.what)),
          .group = std::string(workloads::name_of(group.kind)),
          .dtype = std::string(torch_name(update ? precision.gradients : precision.weights)),
          .bytes = call.what.bytes * call.repeat / parts,
          .group_size = static_cast<int>(group.members.size()),
          .group_ranks = group.members,
          .algorithm = prepared.prices.calls[index].algorithm,
          .protocol = known_protocol(prepared.prices.calls[index], prepared.job.system)};
}

void add_collectives(const PreparedStep& prepared, Timeline& timeline) {
  for (std::size_t i = 0; i < prepared.graph.calls.size(); ++i) timeline.collectives.push_back(collective_of(prepared, i));
}

// All but what happens.
Timeline scene_of(const PreparedStep& prepared) {
  const Job& job = prepared.job;
  const Software& software = job.system.software;
  Timeline timeline;
  const Gpu& gpu = job.system.gpu;
  timeline.issue_s = software.replays_graphs ? 0 : gpu.host_time * software.issue_s;
  timeline.launch_s = software.replays_graphs ? 0 : gpu.host_time * gpu.launch_s;
  timeline.streams.assign(workloads::stream_names.begin(), workloads::stream_names.end());
  for (const workloads::SimulatedRank& rank : prepared.graph.ranks) {
    const int per_node = job.system.cluster.gpus_per_node;
    timeline.ranks.push_back({rank.rank, rank.stage, rank.multiplicity, rank.rank / per_node, rank.rank % per_node});
  }
  return timeline;
}

std::vector<std::uint32_t> living(const Timeline& timeline) {
  std::vector<std::uint32_t> ranks;
  for (std::uint32_t i = 0; i < timeline.ranks.size(); ++i) {
    if (timeline.ranks[i].dead_s < 0) ranks.push_back(i);
  }
  return ranks;
}

}  // namespace

TimelineMaker::TimelineMaker() : events_(std::make_shared<StepEvents>()) {}
TimelineMaker::~TimelineMaker() = default;
TimelineMaker::TimelineMaker(TimelineMaker&&) noexcept = default;

void TimelineMaker::add(std::shared_ptr<const PreparedStep> prepared, std::vector<Execution> executions) {
  if (timeline_.steps_s.empty()) timeline_ = scene_of(*prepared);
  const auto first_collective = static_cast<std::int32_t>(timeline_.collectives.size());
  add_collectives(*prepared, timeline_);
  const std::vector<double> steps_s = events_->add(std::move(prepared), std::move(executions), first_collective);
  if (!timeline_.steps_s.empty()) timeline_.steps_s.pop_back();
  timeline_.steps_s.insert(timeline_.steps_s.end(), steps_s.begin(), steps_s.end());
}

Timeline TimelineMaker::timeline() && {
  timeline_.knows_memory = true;
  timeline_.events = std::move(events_);
  return std::move(timeline_);
}

Timeline timeline_of(std::shared_ptr<const PreparedStep> prepared, FailedStep step, const std::vector<RankFailure>& failures) {
  Timeline timeline = scene_of(*prepared);
  add_collectives(*prepared, timeline);
  for (std::size_t i = 0; i < failures.size(); ++i) {
    timeline.instants.push_back({"failure: " + step.aftermath.failures[i].what, failures[i].ranks, failures[i].at_s});
    if (failures[i].ports) continue;
    for (const std::uint32_t rank : failures[i].ranks) {
      if (timeline.ranks[rank].dead_s < 0) timeline.ranks[rank].dead_s = failures[i].at_s;
    }
  }
  if (step.aftermath.detected) timeline.instants.push_back({"failure detected", living(timeline), step.aftermath.detected_s});
  const auto events = std::make_shared<StepEvents>();
  events->add(std::move(prepared), std::move(step));
  timeline.steps_s = {0, events->last_end_s()};
  timeline.events = events;
  return timeline;
}

}  // namespace rehearse::sim
