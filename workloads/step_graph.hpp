// One training step as a directed acyclic graph of operations: plain data, without time and without SimGrid.
#pragma once

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
#include "workloads/plan.hpp"

namespace rehearse::workloads {

using OpId = std::uint32_t;

// In-order queues of a GPU, as CUDA streams are; host: what its share of the host's processors does.
enum class Stream : std::uint8_t { compute, tp, cp, pp_forward, pp_backward, dp, ep_dispatch, ep_combine, d2h, h2d, host, count };
inline constexpr std::size_t stream_count = static_cast<std::size_t>(Stream::count);
[[nodiscard]] std::string_view name_of(Stream stream);

// What the time of an operation is booked as when nothing hides it.
enum class Purpose : std::uint8_t { compute, recompute, tp, cp, ep, pp, dp, offload, optimizer };

// copy: between a GPU and its host's memory, or within that memory (the update of an optimizer on the host).
enum class OpKind : std::uint8_t { compute, collective, p2p, copy };

struct Op {
  OpKind kind = OpKind::compute;
  Stream stream = Stream::compute;
  Purpose purpose = Purpose::compute;
  std::uint32_t rank = 0;   // index into StepGraph::ranks
  std::uint32_t item = 0;   // compute: index into works; otherwise: index into calls
  std::uint32_t joint = 0;  // collective: index into joints
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
  bool step_overhead = false;              // the software stack's per-step host time instead of operators
  std::shared_ptr<const PassQueue> queue;  // what the host issues together with the operators; null: the operators alone
  std::uint32_t queue_group = 0;           // of the queue's calls
  std::optional<ExpertWork> experts = {};  // instead of operators
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

// The operations, one per simulated member, that start together: a collective waits for its last member.
struct Joint {
  std::vector<OpId> members;
};

struct SimulatedRank {
  int rank = 0;  // representative global rank
  int stage = 0;
  int multiplicity = 1;
};

struct StepGraph {
  std::vector<SimulatedRank> ranks;
  std::vector<Op> ops;
  std::vector<Work> works;
  std::vector<Group> groups;
  std::vector<Call> calls;
  std::vector<Joint> joints;
  std::vector<std::string> labels;
  bool staggered = false;               // a rank's step counts from its own start to its own end (Schedule::staggers_steps)
  std::vector<std::uint32_t> receiver;  // [op] p2p: index of the receiving simulated rank; otherwise the op's own rank

  // Successors in compressed rows: those of op i are successors[first_successor[i] .. first_successor[i+1]).
  std::vector<std::uint32_t> first_successor;
  std::vector<OpId> successors;
  std::vector<std::uint32_t> in_degree;

  [[nodiscard]] std::span<const OpId> successors_of(OpId op) const {
    return std::span(successors).subspan(first_successor[op], first_successor[op + 1] - first_successor[op]);
  }
};

// Collects operations and dependencies, then freezes them into the rows above. Operations of one rank and stream run in the order they are
// added.
class StepGraphBuilder {
 public:
  explicit StepGraphBuilder(std::vector<SimulatedRank> ranks);

  OpId add(Op op, std::string_view label);
  void depend(OpId before, OpId after);  // `after` starts when `before` has ended
  std::uint32_t add_work(Work work);
  // Equal groups share an entry. `folded`: the simulated ranks of the members, sorted and unique.
  std::uint32_t add_group(GroupKind kind, std::vector<int> members, const std::vector<std::uint32_t>& folded);
  std::uint32_t add_call(const Communication& what, int repeat, std::uint32_t group);  // equal calls share an entry
  void set_receiver(OpId p2p, std::uint32_t simulated_rank);

  [[nodiscard]] const Op& op(OpId id) const { return graph_.ops[id]; }
  // Throws std::logic_error when the dependencies have a cycle.
  [[nodiscard]] StepGraph freeze() &&;

 private:
  void meet(OpId collective);
  void check_acyclic() const;

  StepGraph graph_;
  std::vector<std::pair<OpId, OpId>> edges_;
  std::vector<OpId> last_in_stream_;  // [rank * streams + stream]
  std::unordered_map<std::string, std::uint32_t> labels_, meetings_, groups_, calls_;
  std::vector<std::vector<std::uint32_t>> joints_of_meeting_;   // [meeting]: joints in order of occurrence
  std::unordered_map<std::uint64_t, std::size_t> joints_seen_;  // (rank, meeting) -> how many of them this rank has joined
};

}  // namespace rehearse::workloads
