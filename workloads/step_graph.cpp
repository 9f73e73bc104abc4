#include "workloads/step_graph.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "config/huge_pages.hpp"
#include "workloads/cycles.hpp"

namespace rehearse::workloads {
namespace {

// Experts compute a rank's own tokens, and a queue's calls are those of a rank's own groups.
bool goes_with_rank(const Work& work) { return work.experts || !work.queue_groups.empty(); }

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

void StepGraph::set_work(OpId id, std::uint32_t work) {
  const RankBlock& block = block_of(id);
  programs_[block.program].ops[id - block.first].item = work;
}

StepGraphBuilder::StepGraphBuilder(std::vector<SimulatedRank> ranks) {
  graph_.ranks = std::move(ranks);
  last_in_stream_.assign(graph_.ranks.size() * stream_count, no_op);
}

void StepGraphBuilder::open_block(std::uint32_t rank) {
  const auto count = [](const auto& all) { return static_cast<std::uint32_t>(all.size()); };
  graph_.blocks_.push_back({static_cast<OpId>(graph_.size_), count(graph_.programs_), rank, count(graph_.calls_of_),
                            count(graph_.joints_of_), count(graph_.receivers_), count(graph_.works_of_)});
  graph_.programs_.emplace_back();
  first_block_of_.push_back(graph_.blocks_.size() - 1);
}

void StepGraphBuilder::begin_block(std::uint32_t rank) {
  close_block();
  open_block(rank);
}

// The open block's dependencies in rows.
void StepGraphBuilder::close_block() {
  if (graph_.programs_.empty()) return;
  RankProgram& program = graph_.programs_.back();
  if (!program.first_successor.empty()) return;
  const std::size_t n = program.ops.size();
  program.in_degree.assign(n, 0);
  program.first_successor.assign(n + 1, 0);
  for (const auto& [before, after] : edges_) {
    ++program.first_successor[before + 1];
    ++program.in_degree[after];
  }
  for (std::size_t i = 0; i < n; ++i) program.first_successor[i + 1] += program.first_successor[i];
  program.successors.resize(edges_.size());
  std::vector<std::uint32_t> next(program.first_successor.begin(), program.first_successor.end() - 1);
  for (const auto& [before, after] : edges_) program.successors[next[before]++] = after;
  program.ops.shrink_to_fit();
  edges_.clear();
  place_of_call_.clear();
}

void StepGraphBuilder::repeat_block(std::size_t block, std::uint32_t rank, const std::vector<std::uint32_t>& calls,
                                    const std::vector<std::uint32_t>& works, const std::vector<std::uint32_t>& receivers) {
  close_block();
  const std::uint32_t which = graph_.blocks_[block].program;
  const auto count = [](const auto& all) { return static_cast<std::uint32_t>(all.size()); };
  graph_.blocks_.push_back({static_cast<OpId>(graph_.size_), which, rank, count(graph_.calls_of_), count(graph_.joints_of_),
                            count(graph_.receivers_), count(graph_.works_of_)});
  const RankProgram& program = graph_.programs_[which];
  graph_.size_ += program.ops.size();
  graph_.calls_of_.insert(graph_.calls_of_.end(), calls.begin(), calls.end());
  graph_.works_of_.insert(graph_.works_of_.end(), works.begin(), works.end());
  graph_.receivers_.insert(graph_.receivers_.end(), receivers.begin(), receivers.end());
  graph_.releases_.resize(graph_.receivers_.size(), no_op);
  for (const Op& op : program.ops) {
    if (op.kind != OpKind::collective) continue;
    const std::uint32_t meeting = graph_.groups[graph_.calls[calls[op.item]].group].meeting;
    graph_.joints_of_.push_back(joint_of(meeting, program.turns[op.joint]));
  }
}

std::vector<std::uint32_t> StepGraphBuilder::calls_of(std::size_t block) const {
  const auto end = block + 1 < graph_.blocks_.size() ? graph_.blocks_[block + 1].first_call : graph_.calls_of_.size();
  return {graph_.calls_of_.begin() + graph_.blocks_[block].first_call, graph_.calls_of_.begin() + static_cast<std::ptrdiff_t>(end)};
}

std::vector<std::uint32_t> StepGraphBuilder::receivers_of(std::size_t block) const {
  const auto end = block + 1 < graph_.blocks_.size() ? graph_.blocks_[block + 1].first_message : graph_.receivers_.size();
  return {graph_.receivers_.begin() + graph_.blocks_[block].first_message, graph_.receivers_.begin() + static_cast<std::ptrdiff_t>(end)};
}

OpId StepGraphBuilder::add(Op op, std::string_view label) {
  if (graph_.blocks_.empty()) open_block(0);
  const RankBlock& block = graph_.blocks_.back();
  const auto id = static_cast<OpId>(graph_.size_++);
  op.label = intern(labels_, std::string(label));
  if (op.label == graph_.labels.size()) graph_.labels.emplace_back(label);
  const std::uint32_t rank = op.rank, call = op.item;
  op.rank -= block.rank;
  if (op.kind != OpKind::compute) {
    op.item = own_call(call);
  } else if (op.item < graph_.works.size() && goes_with_rank(graph_.works[op.item])) {
    graph_.works_of_.push_back(op.item);
    op.joint = static_cast<std::uint32_t>(graph_.works_of_.size()) - block.first_work;
  }
  if (op.kind == OpKind::collective) op.joint = static_cast<std::uint32_t>(graph_.joints_of_.size()) - block.first_joint;
  if (op.kind == OpKind::p2p) {
    op.joint = static_cast<std::uint32_t>(graph_.receivers_.size()) - block.first_message;
    graph_.receivers_.push_back(rank);
    graph_.releases_.push_back(no_op);
  }
  graph_.programs_.back().ops.push_back(op);
  OpId& last = last_in_stream_[rank * stream_count + static_cast<std::size_t>(op.stream)];
  if (last != no_op) depend(last, id);
  last = id;
  if (op.kind == OpKind::collective) meet(rank, call);
  return id;
}

// Its place among the open block's calls.
std::uint32_t StepGraphBuilder::own_call(std::uint32_t call) {
  const auto [it, added] = place_of_call_.try_emplace(call, static_cast<std::uint32_t>(place_of_call_.size()));
  if (added) graph_.calls_of_.push_back(call);
  return it->second;
}

// The n-th collective of a meeting on one rank is the n-th on all of its ranks.
void StepGraphBuilder::meet(std::uint32_t rank, std::uint32_t call) {
  const std::uint32_t meeting = graph_.groups[graph_.calls[call].group].meeting;
  const std::uint32_t turn = joints_seen_[(std::uint64_t{rank} << 32U) | meeting]++;
  graph_.programs_.back().turns.push_back(turn);
  graph_.joints_of_.push_back(joint_of(meeting, turn));
}

std::uint32_t StepGraphBuilder::joint_of(std::uint32_t meeting, std::uint32_t turn) {
  std::vector<std::uint32_t>& joints = joints_of_meeting_[meeting];
  while (turn >= joints.size()) joints.push_back(joints_++);
  return joints[turn];
}

void StepGraphBuilder::depend(OpId before, OpId after) {
  const OpId first = graph_.blocks_.back().first;
  if (before < first || after < first) throw std::logic_error("a dependency between blocks");
  edges_.emplace_back(before - first, after - first);
}

void StepGraphBuilder::release(OpId message, OpId after) {
  close_block();
  const auto block_of = [&](OpId id) {
    return static_cast<std::size_t>(std::ranges::upper_bound(graph_.blocks_, id, {}, &RankBlock::first) - graph_.blocks_.begin() - 1);
  };
  const RankBlock& from = graph_.blocks_[block_of(message)];
  graph_.releases_[from.first_message + graph_.programs_[from.program].ops[message - from.first].joint] = after;
  const std::size_t to = block_of(after);
  const RankBlock& own = graph_.blocks_[to];
  if (first_block_of_[own.program] == to) ++graph_.programs_[own.program].in_degree[after - own.first];
}

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

void StepGraphBuilder::set_receiver(OpId p2p, std::uint32_t simulated_rank) {
  const RankBlock& block = graph_.blocks_.back();
  graph_.receivers_[block.first_message + graph_.programs_.back().ops[p2p - block.first].joint] = simulated_rank;
}

// Kahn's algorithm with the members of a joint as one vertex: a collective ends for all of its members at once.
void StepGraphBuilder::check_acyclic() const {
  if (has_cycle(graph_)) throw std::logic_error("the step graph has a cycle: the schedule deadlocks");
}

void StepGraphBuilder::list_members() {
  std::vector<std::uint32_t>& first = graph_.first_member_;
  first.assign(joints_ + 1UL, 0);
  for (const std::uint32_t joint : graph_.joints_of_) ++first[joint + 1];
  for (std::size_t i = 0; i < joints_; ++i) first[i + 1] += first[i];
  config::reserve_on_huge_pages(graph_.members_, graph_.joints_of_.size());
  graph_.members_.resize(graph_.joints_of_.size());
  std::vector<std::uint32_t> next(first.begin(), first.end() - 1);
  for (const RankBlock& block : graph_.blocks()) {
    const RankProgram& program = graph_.programs_[block.program];
    for (OpId at = 0; at < program.ops.size(); ++at) {
      if (program.ops[at].kind != OpKind::collective) continue;
      graph_.members_[next[graph_.joints_of_[block.first_joint + program.ops[at].joint]]++] = block.first + at;
    }
  }
}

StepGraph StepGraphBuilder::freeze() && {
  if (graph_.blocks_.empty()) open_block(0);
  close_block();
  graph_.blocks_.push_back({static_cast<OpId>(graph_.size_)});
  std::uint32_t block = 0;
  for (std::size_t id = 0; id < graph_.size_; id += std::size_t{1} << StepGraph::chunk_bits) {
    while (graph_.blocks_[block + 1].first <= id) ++block;
    graph_.block_at_.push_back(block);
  }
  list_members();
  check_acyclic();
  return std::move(graph_);
}

}  // namespace rehearse::workloads
