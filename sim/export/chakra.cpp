// Chakra execution traces of one step, one file for each rank, for ASTRA-sim and its kin (mlcommons/chakra, schema/protobuf/et_def.proto;
// arXiv 2305.14516): what is computed, sent and waited for, and for how long a computation takes here.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <stdexcept>

#include "sim/engine/prepared_step.hpp"
#include "sim/export/exporter.hpp"
#include "sim/export/protobuf.hpp"

namespace rehearse::sim {
namespace {

using workloads::CollectiveKind;
using workloads::Op;
using workloads::OpId;
using workloads::OpKind;

constexpr int most_ranks = 4096;  // a file each

enum NodeType : std::uint64_t { memory_load = 2, memory_store = 3, computation = 4, send = 5, receive = 6, collective = 7 };

std::uint64_t comm_type(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_reduce:
      return 0;
    case CollectiveKind::all_gather:
      return 2;
    case CollectiveKind::broadcast:
      return 5;
    case CollectiveKind::all_to_all:
      return 6;
    case CollectiveKind::reduce_scatter:
      return 7;
    case CollectiveKind::send_recv:
      break;
  }
  throw std::logic_error("a message is no collective");
}

void attribute(ProtobufMessage& node, std::string_view name, int field, std::uint64_t value) {
  ProtobufMessage inner;
  inner.text(1, name);
  inner.number(field, value);
  node.message(10, inner);
}
void attribute(ProtobufMessage& node, std::string_view name, std::string_view value) {
  ProtobufMessage inner;
  inner.text(1, name);
  inner.text(29, value);
  node.message(10, inner);
}
constexpr int int32_field = 7, int64_field = 9, uint64_field = 13, bool_field = 27;

// A step with every rank for itself, and who waits for what.
struct Step {
  explicit Step(Job its_job) : job(std::move(its_job)), compiled(compiled_for_simulation(job)), prepared(job, compiled) {
    const workloads::StepGraph& graph = prepared.graph;
    waits_for.resize(graph.size());
    arrives.resize(graph.size());
    of_rank.resize(graph.ranks.size());
    for (OpId id = 0; id < graph.size(); ++id) {
      of_rank[graph.op(id).rank].push_back(id);
      const bool message = graph.op(id).kind == OpKind::p2p;
      for (const OpId next : graph.successors_of(id)) {
        const bool across = message && graph.op(next).rank != graph.op(id).rank;
        (across ? arrives : waits_for)[next].push_back(id);
      }
    }
  }
  Job job;
  workloads::Compiled compiled;
  PreparedStep prepared;
  std::vector<std::vector<OpId>> waits_for, arrives;  // [operation]: on its rank; messages from another
  std::vector<std::vector<OpId>> of_rank;
};

// Nodes of a file are numbered by operation: 2 id is the operation, or what it sends; 2 id + 1 what is received by it.
class RankFile {
 public:
  RankFile(const Step& step, std::uint32_t rank, std::ostream& out) : step_(step), graph_(step.prepared.graph), rank_(rank), out_(out) {}

  void write() {
    ProtobufMessage head;
    head.text(1, "0.0.4");
    out_ << head.delimited();
    for (const OpId id : step_.of_rank[rank_]) write_operation(id);
  }

 private:
  ProtobufMessage node(std::uint64_t id, const Op& op, NodeType type) {
    ProtobufMessage out;
    out.number(1, id);
    out.text(2, graph_.labels[op.label]);
    out.number(3, type);
    return out;
  }

  void depend(ProtobufMessage& out, OpId id) {
    for (const OpId before : step_.waits_for[id]) {
      out.number(5, 2ULL * before);
      if (shifts(graph_.op(before))) out.number(5, 2ULL * before + 1);
    }
    for (const OpId message : step_.arrives[id]) out.number(5, 2ULL * message + 1);
  }

  void end(ProtobufMessage& out) {
    attribute(out, "is_cpu_op", bool_field, 0);
    out_ << out.delimited();
  }

  // A message from one rank to another; `id` tells it from all others between them.
  void write_message(NodeType type, std::uint64_t node_id, OpId id, const Op& op, int from, int to, bool waits) {
    const workloads::Call& call = graph_.calls[op.item];
    ProtobufMessage out = node(node_id, op, type);
    if (waits) depend(out, id);
    attribute(out, "comm_size", int64_field, size_of(call));
    attribute(out, "comm_src", int32_field, static_cast<std::uint64_t>(from));
    attribute(out, "comm_dst", int32_field, static_cast<std::uint64_t>(to));
    attribute(out, "comm_tag", int32_field, tag_of(id, op));
    end(out);
  }

  static std::uint64_t size_of(const workloads::Call& call) {
    return static_cast<std::uint64_t>(std::llround(call.what.bytes * call.repeat));
  }
  // In a ring all members' messages of one turn have one tag.
  std::uint64_t tag_of(OpId id, const Op& op) const { return op.kind == OpKind::collective ? op.joint : graph_.joints() + id; }
  bool shifts(const Op& op) const { return op.kind == OpKind::collective && graph_.calls[op.item].what.kind == CollectiveKind::send_recv; }

  void write_operation(OpId id) {
    const Op op = graph_.op(id);
    for (const OpId message : step_.arrives[id]) {
      const Op sent = graph_.op(message);
      const auto& members = graph_.groups[graph_.calls[sent.item].group].members;
      write_message(receive, 2ULL * message + 1, message, sent, members.front(), members.back(), false);
    }
    switch (op.kind) {
      case OpKind::compute:
        return write_computation(id, op);
      case OpKind::copy:
        return write_copy(id, op);
      case OpKind::collective:
        return shifts(op) ? write_shift(id, op) : write_collective(id, op);
      case OpKind::p2p: {
        const auto& members = graph_.groups[graph_.calls[op.item].group].members;
        return write_message(send, 2ULL * id, id, op, members.front(), members.back(), true);
      }
    }
  }

  void write_computation(OpId id, const Op& op) {
    const workloads::Work& work = graph_.works[op.item];
    double flops = 0, bytes = 0;
    for (const workloads::Operator& each : work.operators) {
      flops += each.flops * work.repeat;
      bytes += each.bytes * work.repeat;
    }
    ProtobufMessage out = node(2ULL * id, op, computation);
    depend(out, id);
    out.number(7, static_cast<std::uint64_t>(std::llround(step_.prepared.prices.compute_s(op) * 1e6)));
    attribute(out, "num_ops", int64_field, static_cast<std::uint64_t>(std::llround(flops)));
    attribute(out, "tensor_size", uint64_field, static_cast<std::uint64_t>(std::llround(bytes)));
    end(out);
  }

  void write_copy(OpId id, const Op& op) {
    const workloads::Call& call = graph_.calls[op.item];
    ProtobufMessage out = node(2ULL * id, op, call.what.group == workloads::GroupKind::from_host ? memory_load : memory_store);
    depend(out, id);
    attribute(out, "tensor_size", uint64_field, size_of(call));
    end(out);
  }

  void write_collective(OpId id, const Op& op) {
    const workloads::Call& call = graph_.calls[op.item];
    ProtobufMessage out = node(2ULL * id, op, collective);
    depend(out, id);
    attribute(out, "comm_type", int64_field, comm_type(call.what.kind));
    attribute(out, "comm_size", int64_field, size_of(call));
    attribute(out, "pg_name", std::to_string(call.group));
    end(out);
  }

  // Every member sends to the next and receives from the one before.
  void write_shift(OpId id, const Op& op) {
    const auto& members = graph_.groups[graph_.calls[op.item].group].members;
    const int own = graph_.ranks[rank_].rank;
    const auto at = static_cast<std::size_t>(std::ranges::find(members, own) - members.begin());
    const std::size_t n = members.size();
    write_message(send, 2ULL * id, id, op, own, members[(at + 1) % n], true);
    write_message(receive, 2ULL * id + 1, id, op, members[(at + n - 1) % n], own, true);
  }

  const Step& step_;
  const workloads::StepGraph& graph_;
  std::uint32_t rank_;
  std::ostream& out_;
};

// Process groups by their names in the traces.
void write_groups(const Step& step, std::ostream& out) {
  nlohmann::ordered_json groups = nlohmann::ordered_json::object();
  for (std::size_t i = 0; i < step.prepared.graph.groups.size(); ++i) groups[std::to_string(i)] = step.prepared.graph.groups[i].members;
  out << groups.dump() << '\n';
}

class Chakra final : public Exporter {
 public:
  [[nodiscard]] std::string_view summary() const override { return "Chakra execution traces of a step, a file for each rank"; }
  [[nodiscard]] std::string_view read_by() const override { return ""; }
  [[nodiscard]] std::vector<ExportedFile> files(const Job& job) const override {
    if (job.system.gpus > most_ranks)
      throw config::InputError(fmt::format("traces of {} ranks are too many files", job.system.gpus),
                               fmt::format("{} at most", most_ranks));
    Job every_rank = job;
    every_rank.system.simulation.all_ranks = true;
    const auto step = std::make_shared<const Step>(std::move(every_rank));
    std::vector<ExportedFile> files;
    for (std::uint32_t rank = 0; rank < step->prepared.graph.ranks.size(); ++rank) {
      files.push_back({fmt::format("{}.{}.et", job.name, step->prepared.graph.ranks[rank].rank),
                       [step, rank](std::ostream& out) { RankFile(*step, rank, out).write(); }});
    }
    files.push_back({job.name + ".groups.json", [step](std::ostream& out) { write_groups(*step, out); }});
    return files;
  }
};

const ExporterRegistry::Registration<Chakra> chakra_registration("chakra");

}  // namespace
}  // namespace rehearse::sim
