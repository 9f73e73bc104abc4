// One training step as a directed acyclic graph of operations: plain data, without time and without SimGrid. What ranks have in common is
// there once.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "workloads/expert_work.hpp"
#include "workloads/operators.hpp"
#include "workloads/phase.hpp"
#include "workloads/plan.hpp"

namespace rehearse::workloads {

using OpId = std::uint32_t;
inline constexpr OpId no_op = ~OpId{0};

// In-order queues of a GPU, as CUDA streams are; host: what its share of the host's processors does.
enum class Stream : std::uint8_t {
  compute,
  tp,
  cp,
  pp_forward,
  pp_backward,
  dp,
  dp_copies,
  ep_dispatch,
  ep_combine,
  d2h,
  h2d,
  host,
  count
};
// What replicas exchange; of hybrid sharding, sums over copies of a shard have a queue of their own.
[[nodiscard]] constexpr bool is_of_replicas(Stream stream) { return stream == Stream::dp || stream == Stream::dp_copies; }
inline constexpr std::size_t stream_count = static_cast<std::size_t>(Stream::count);
inline constexpr std::array<std::string_view, stream_count> stream_names{
    "compute", "tp", "cp", "pp forward", "pp backward", "dp", "dp copies", "ep dispatch", "ep combine", "d2h", "h2d", "host"};
[[nodiscard]] constexpr std::string_view name_of(Stream stream) { return stream_names[static_cast<std::size_t>(stream)]; }

// copy: between a GPU and its host's memory, or within that memory (the update of an optimizer on the host).
enum class OpKind : std::uint8_t { compute, collective, p2p, copy };

struct Op {
  OpKind kind = OpKind::compute;
  Stream stream = Stream::compute;
  Phase phase = Phase::compute;
  std::uint32_t rank = 0;   // index into StepGraph::ranks
  std::uint32_t item = 0;   // compute: index into works; otherwise: index into calls
  std::uint32_t joint = 0;  // collective: the operations, one per simulated member, that start together
  std::uint32_t label = 0;  // index into labels
  std::int32_t microbatch = -1, chunk = -1, layer = -1;
  std::int32_t unit = -1;  // index of the unit in its chunk (StageProgram::chunks), -1 outside of units
  Pass pass =
      Pass::update;  // of the unit's slot: forward, recompute, backward_input (both gradients together count as it) or backward_weight
  std::uint16_t units = 1;  // that it works on one after another, `unit` first: upwards in forward, downwards in backward
};

// Kernels that run one after another on the compute stream as one operation.
struct Work {
  std::vector<Operator> operators;
  int repeat = 1;
  bool step_overhead = false;                    // the software stack's per-step host time instead of operators
  std::shared_ptr<const PassQueue> queue = {};   // what the host issues together with the operators; null: the operators alone
  std::vector<std::uint32_t> queue_groups = {};  // [call of the queue, then pair] index into groups
  std::optional<ExpertWork> experts = {};        // instead of operators
  bool in_pair = false;                          // beside a collective: what the host takes is in the queue of the pass
};

// Ranks that communicate. `meeting` names the simulated counterpart: groups whose members fold onto the same simulated ranks share it.
struct Group {
  GroupKind kind = GroupKind::tp;
  std::vector<int> members;  // global ranks in group order; p2p: {sender, receiver}
  std::uint32_t meeting = 0;
};

// One kind of communication on one group: `repeat` calls back to back.
struct Call {
  Communication what;
  int repeat = 1;
  std::uint32_t group = 0;  // index into groups
};

struct SimulatedRank {
  int rank = 0;  // representative global rank
  int stage = 0;
  int multiplicity = 1;
};

// The operations of one simulated rank, or of several that do the same with other groups and other tokens. Places count from the first
// operation; an operation's item is one of the block's calls or a work, its joint one of the block's joints; of a message it is one of the
// block's messages, and of experts' work one of the block's works, counted from 1.
struct RankProgram {
  std::vector<Op> ops;
  // Successors in compressed rows: those of op i are successors[first_successor[i] .. first_successor[i+1]).
  std::vector<std::uint32_t> first_successor, successors;
  std::vector<std::uint16_t> in_degree;
  std::vector<std::uint32_t> turns;  // [joint of the block] which of its meeting's it is
};

// A rank's own copy of a program, which is there once: the numbers that differ.
struct RankBlock {
  OpId first = 0;
  std::uint32_t program = 0, rank = 0;
  std::uint32_t first_call = 0, first_joint = 0, first_message = 0, first_work = 0;
};

// What follows an operation: places in its own block, and of a message what it releases on another rank.
class Successors {
 public:
  class Iterator {
   public:
    Iterator(const Successors* all, std::size_t at) : all_(all), at_(at) {}
    OpId operator*() const { return at_ < all_->own_.size() ? all_->first_ + all_->own_[at_] : all_->other_; }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    bool operator==(const Iterator& other) const { return at_ == other.at_; }

   private:
    const Successors* all_;
    std::size_t at_;
  };
  Successors(OpId first, std::span<const std::uint32_t> own, OpId other) : first_(first), own_(own), other_(other) {}
  [[nodiscard]] std::size_t size() const { return own_.size() + (other_ != nothing ? 1 : 0); }
  [[nodiscard]] Iterator begin() const { return {this, 0}; }
  [[nodiscard]] Iterator end() const { return {this, size()}; }
  static constexpr OpId nothing = ~OpId{0};

 private:
  OpId first_;
  std::span<const std::uint32_t> own_;
  OpId other_;
};

class StepGraph {
 public:
  std::vector<SimulatedRank> ranks;
  std::vector<Work> works;
  std::vector<Group> groups;
  std::vector<Call> calls;
  std::vector<std::string> labels;
  bool staggered = false;  // a rank's step counts from its own start to its own end (Schedule::staggers_steps)

  [[nodiscard]] std::size_t size() const { return size_; }  // operations: 0 .. size() - 1, each rank's in the order they were added
  [[nodiscard]] Op op(OpId id) const {
    const RankBlock& block = block_of(id);
    Op op = in_program(block, id);
    op.rank += block.rank;
    if (op.kind == OpKind::compute) {
      if (op.joint > 0) op.item = works_of_[block.first_work + op.joint - 1];
      return op;
    }
    op.item = calls_of_[block.first_call + op.item];
    if (op.kind == OpKind::collective) op.joint = joints_of_[block.first_joint + op.joint];
    return op;
  }
  [[nodiscard]] Successors successors_of(OpId id) const {
    const RankBlock& block = block_of(id);
    const RankProgram& program = programs_[block.program];
    const OpId at = id - block.first;
    const std::uint32_t from = program.first_successor[at], to = program.first_successor[at + 1];
    const bool message = program.ops[at].kind == OpKind::p2p;
    return {block.first, std::span(program.successors).subspan(from, to - from),
            message ? releases_[block.first_message + program.ops[at].joint] : Successors::nothing};
  }
  [[nodiscard]] std::uint32_t in_degree(OpId id) const {
    const RankBlock& block = block_of(id);
    return programs_[block.program].in_degree[id - block.first];
  }
  // p2p: index of the receiving simulated rank.
  [[nodiscard]] std::uint32_t receiver(OpId message) const {
    const RankBlock& block = block_of(message);
    return receivers_[block.first_message + in_program(block, message).joint];
  }
  [[nodiscard]] std::size_t joints() const { return first_member_.empty() ? 0 : first_member_.size() - 1; }
  // Of a joint, in order of their numbers.
  [[nodiscard]] std::span<const OpId> members(std::uint32_t joint) const {
    return std::span(members_).subspan(first_member_[joint], first_member_[joint + 1] - first_member_[joint]);
  }
  // Gives a computation another work, on all ranks that do the same.
  void set_work(OpId id, std::uint32_t work);

  // Ranks whose operations differ in groups alone have the same program. [simulated rank] where graphs are built rank by rank, else one.
  [[nodiscard]] std::span<const RankBlock> blocks() const { return std::span(blocks_).first(blocks_.size() - 1); }
  [[nodiscard]] const RankProgram& program(const RankBlock& block) const { return programs_[block.program]; }
  // An operation of the block without the numbers that are the block's own: rank, work, call and joint.
  [[nodiscard]] const Op& in_program(const RankBlock& block, OpId id) const { return program(block).ops[id - block.first]; }
  [[nodiscard]] const RankBlock& block_of(OpId id) const {
    const RankBlock* block = &blocks_[block_at_[id >> chunk_bits]];
    while (block[1].first <= id) ++block;
    return *block;
  }

 private:
  friend class StepGraphBuilder;
  static constexpr int chunk_bits = 8;

  std::size_t size_ = 0;
  std::vector<RankProgram> programs_;
  std::vector<RankBlock> blocks_;                                           // in order of their operations; one behind the last
  std::vector<std::uint32_t> block_at_;                                     // [id >> chunk_bits] of the first operation there
  std::vector<std::uint32_t> calls_of_, joints_of_, receivers_, works_of_;  // as the blocks say
  std::vector<OpId> releases_;                                              // [message] on another rank
  std::vector<std::uint32_t> first_member_;                                 // [joint] in members_
  std::vector<OpId> members_;
};

// Collects operations and dependencies, then freezes them into programs. Operations of one rank and stream run in the order they are added.
class StepGraphBuilder {
 public:
  explicit StepGraphBuilder(std::vector<SimulatedRank> ranks);

  // All operations from here on are of this rank, and each rank has one block; without any, ranks may be mixed.
  void begin_block(std::uint32_t rank);
  // Another rank that does what the block's rank does: with these calls and works of experts instead, one for each of calls_of(block) and
  // each_own_work(block), and with messages to these, one for each of receivers_of(block).
  void repeat_block(std::size_t block, std::uint32_t rank, const std::vector<std::uint32_t>& calls, const std::vector<std::uint32_t>& works,
                    const std::vector<std::uint32_t>& receivers);
  // Visits the computations whose work goes with the rank, with items of the graph.
  template <class Visit>
  void each_own_work(std::size_t block, Visit visit) const {
    const RankBlock own = graph_.blocks_[block];
    const auto end = block + 1 < graph_.blocks_.size() ? graph_.blocks_[block + 1].first_work : graph_.works_of_.size();
    if (own.first_work == end) return;
    for (Op op : graph_.programs_[own.program].ops) {
      if (op.kind != OpKind::compute || op.joint == 0) continue;
      op.item = graph_.works_of_[own.first_work + op.joint - 1];
      visit(op);
    }
  }
  [[nodiscard]] const Work& work(std::uint32_t index) const { return graph_.works[index]; }
  [[nodiscard]] std::vector<std::uint32_t> calls_of(std::size_t block) const;
  [[nodiscard]] std::vector<std::uint32_t> receivers_of(std::size_t block) const;
  [[nodiscard]] OpId first_of(std::size_t block) const { return graph_.blocks_[block].first; }
  [[nodiscard]] const Call& call(std::uint32_t index) const { return graph_.calls[index]; }
  [[nodiscard]] const Group& group(std::uint32_t index) const { return graph_.groups[index]; }

  OpId add(Op op, std::string_view label);
  void depend(OpId before, OpId after);    // of one block: `after` starts when `before` has ended
  void release(OpId message, OpId after);  // the same on another rank; ranks of one program are released in the same places
  std::uint32_t add_work(Work work);
  // Equal groups share an entry. `folded`: the simulated ranks of the members, sorted and unique.
  std::uint32_t add_group(GroupKind kind, std::vector<int> members, const std::vector<std::uint32_t>& folded);
  std::uint32_t add_call(const Communication& what, int repeat, std::uint32_t group);  // equal calls share an entry
  void set_receiver(OpId p2p, std::uint32_t simulated_rank);

  // Throws std::logic_error when the dependencies have a cycle.
  [[nodiscard]] StepGraph freeze() &&;

 private:
  void open_block(std::uint32_t rank);
  void close_block();
  std::uint32_t own_call(std::uint32_t call);
  void meet(std::uint32_t rank, std::uint32_t call);
  std::uint32_t joint_of(std::uint32_t meeting, std::uint32_t turn);
  void list_members();
  void check_acyclic() const;

  StepGraph graph_;
  std::vector<std::size_t> first_block_of_;                         // [program]
  std::vector<std::pair<OpId, OpId>> edges_;                        // of the open block, in places
  std::vector<OpId> last_in_stream_;                                // [rank * streams + stream]
  std::unordered_map<std::uint32_t, std::uint32_t> place_of_call_;  // in the open block
  std::unordered_map<std::string, std::uint32_t> labels_, meetings_, groups_, calls_;
  std::vector<std::vector<std::uint32_t>> joints_of_meeting_;  // [meeting]: joints in order of occurrence
  std::uint32_t joints_ = 0;
  std::unordered_map<std::uint64_t, std::uint32_t> joints_seen_;  // (rank, meeting) -> how many of them this rank has joined
};

}  // namespace rehearse::workloads
