#include "workloads/step_graph.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <limits>
#include <stdexcept>

namespace rehearse::workloads {
namespace {

constexpr OpId no_op = std::numeric_limits<OpId>::max();

// The index of `key`, which is given the next free one when it is new.
std::uint32_t intern(std::unordered_map<std::string, std::uint32_t>& table, std::string key) {
  return table.try_emplace(std::move(key), static_cast<std::uint32_t>(table.size())).first->second;
}

// All that tells calls apart, byte for byte: most operations of a step ask for a call that is there already.
std::string call_key(const Communication& what, int repeat, std::uint32_t group) {
  std::string key;
  const auto add = [&key](const auto& value) { key.append(reinterpret_cast<const char*>(&value), sizeof value); };
  const Exchange* exchange = what.exchange.get();
  add(group);
  add(exchange);
  add(repeat);
  add(what.bytes);
  add(what.kind);
  add(what.pass);
  return key + what.name;
}

}  // namespace

std::string_view name_of(Stream stream) {
  switch (stream) {
    case Stream::compute:
      return "compute";
    case Stream::tp:
      return "tp";
    case Stream::cp:
      return "cp";
    case Stream::pp_forward:
      return "pp forward";
    case Stream::pp_backward:
      return "pp backward";
    case Stream::dp:
      return "dp";
    case Stream::ep_dispatch:
      return "ep dispatch";
    case Stream::ep_combine:
      return "ep combine";
    case Stream::d2h:
      return "d2h";
    case Stream::h2d:
      return "h2d";
    case Stream::host:
      return "host";
    case Stream::count:
      break;
  }
  throw std::logic_error("no such stream");
}

StepGraphBuilder::StepGraphBuilder(std::vector<SimulatedRank> ranks) {
  graph_.ranks = std::move(ranks);
  last_in_stream_.assign(graph_.ranks.size() * stream_count, no_op);
}

OpId StepGraphBuilder::add(Op op, std::string_view label) {
  const auto id = static_cast<OpId>(graph_.ops.size());
  op.label = intern(labels_, std::string(label));
  if (op.label == graph_.labels.size()) graph_.labels.emplace_back(label);
  graph_.ops.push_back(op);
  graph_.receiver.push_back(op.rank);
  OpId& last = last_in_stream_[op.rank * stream_count + static_cast<std::size_t>(op.stream)];
  if (last != no_op) depend(last, id);
  last = id;
  if (op.kind == OpKind::collective) meet(id);
  return id;
}

// The n-th collective of a meeting on one rank is the n-th on all of its ranks.
void StepGraphBuilder::meet(OpId collective) {
  Op& op = graph_.ops[collective];
  const std::uint32_t meeting = graph_.groups[graph_.calls[op.item].group].meeting;
  std::size_t& seen = joints_seen_[(std::uint64_t{op.rank} << 32U) | meeting];
  std::vector<std::uint32_t>& joints = joints_of_meeting_[meeting];
  if (seen == joints.size()) {
    joints.push_back(static_cast<std::uint32_t>(graph_.joints.size()));
    graph_.joints.emplace_back();
  }
  op.joint = joints[seen++];
  graph_.joints[op.joint].members.push_back(collective);
}

void StepGraphBuilder::depend(OpId before, OpId after) { edges_.emplace_back(before, after); }

std::uint32_t StepGraphBuilder::add_work(Work work) {
  graph_.works.push_back(std::move(work));
  return static_cast<std::uint32_t>(graph_.works.size() - 1);
}

std::uint32_t StepGraphBuilder::add_group(GroupKind kind, std::vector<int> members, const std::vector<std::uint32_t>& folded) {
  std::string key = std::to_string(static_cast<int>(kind));
  for (const std::uint32_t rank : folded) key += ',' + std::to_string(rank);
  const std::uint32_t meeting = intern(meetings_, std::move(key));
  if (meeting == joints_of_meeting_.size()) joints_of_meeting_.emplace_back();
  const std::uint32_t index = intern(groups_, fmt::format("{}:{}", static_cast<int>(kind), fmt::join(members, ",")));
  if (index == graph_.groups.size()) graph_.groups.push_back({kind, std::move(members), meeting});
  return index;
}

std::uint32_t StepGraphBuilder::add_call(const Communication& what, int repeat, std::uint32_t group) {
  const std::uint32_t index = intern(calls_, call_key(what, repeat, group));
  if (index == graph_.calls.size()) graph_.calls.push_back({what, repeat, group});
  return index;
}

void StepGraphBuilder::set_receiver(OpId p2p, std::uint32_t simulated_rank) { graph_.receiver[p2p] = simulated_rank; }

// Kahn's algorithm with the members of a joint as one vertex: a collective ends for all of its members at once.
void StepGraphBuilder::check_acyclic() const {
  std::vector<std::uint32_t> missing = graph_.in_degree;
  std::vector<std::size_t> joint_missing;
  for (const Joint& joint : graph_.joints) joint_missing.push_back(joint.members.size());
  std::vector<OpId> ready;
  std::size_t done = 0;
  const auto arrive = [&](OpId id) {
    const Op& op = graph_.ops[id];
    if (op.kind != OpKind::collective) return ready.push_back(id);
    if (--joint_missing[op.joint] == 0) {
      for (const OpId member : graph_.joints[op.joint].members) ready.push_back(member);
    }
  };
  for (OpId id = 0; id < graph_.ops.size(); ++id) {
    if (missing[id] == 0) arrive(id);
  }
  while (!ready.empty()) {
    const OpId id = ready.back();
    ready.pop_back();
    ++done;
    for (const OpId next : graph_.successors_of(id)) {
      if (--missing[next] == 0) arrive(next);
    }
  }
  if (done != graph_.ops.size()) throw std::logic_error("the step graph has a cycle: the schedule deadlocks");
}

StepGraph StepGraphBuilder::freeze() && {
  const std::size_t n = graph_.ops.size();
  graph_.in_degree.assign(n, 0);
  graph_.first_successor.assign(n + 1, 0);
  for (const auto& [before, after] : edges_) {
    ++graph_.first_successor[before + 1];
    ++graph_.in_degree[after];
  }
  for (std::size_t i = 0; i < n; ++i) graph_.first_successor[i + 1] += graph_.first_successor[i];
  graph_.successors.resize(edges_.size());
  std::vector<std::uint32_t> next(graph_.first_successor.begin(), graph_.first_successor.end() - 1);
  for (const auto& [before, after] : edges_) graph_.successors[next[before]++] = after;
  check_acyclic();
  return std::move(graph_);
}

}  // namespace rehearse::workloads
