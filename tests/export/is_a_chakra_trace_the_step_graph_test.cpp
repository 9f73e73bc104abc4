// Chakra traces read back: the graph that their files and the groups beside them describe is the step graph they were written from.
// Messages are paired by sender, receiver and tag, collectives by group and turn, as a reader of the files has to.
#include <gtest/gtest.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "sim/engine/prepared_step.hpp"
#include "sim/export/exporter.hpp"

namespace rehearse::sim::testing {
namespace {

using workloads::CollectiveKind;
using workloads::Op;
using workloads::OpId;
using workloads::OpKind;

// Of the wire format: a message's fields, numbers and bytes apart.
struct WireMessage {
  explicit WireMessage(std::string_view bytes) : rest(bytes) {
    while (!rest.empty()) {
      const std::uint64_t tag = varint();
      const auto field = static_cast<int>(tag >> 3);
      if ((tag & 7) == 0) {
        numbers[field].push_back(varint());
      } else {
        EXPECT_EQ(tag & 7, 2U);
        texts[field].emplace_back(take(varint()));
      }
    }
  }
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1).front());
      value |= static_cast<std::uint64_t>(byte & 127U) << shift;
      if (byte < 128) return value;
    }
  }
  std::string_view take(std::size_t n) {
    if (n > rest.size()) throw std::runtime_error("a message is cut off");
    const std::string_view taken = rest.substr(0, n);
    rest.remove_prefix(n);
    return taken;
  }
  [[nodiscard]] std::uint64_t number(int field) const { return numbers.contains(field) ? numbers.at(field).front() : 0; }

  std::string_view rest;
  std::map<int, std::vector<std::uint64_t>> numbers;
  std::map<int, std::vector<std::string>> texts;
};

enum TraceNodeType : std::uint64_t { load = 2, store = 3, computed = 4, sent = 5, received = 6, joined = 7 };

struct TraceNode {
  int rank = 0;
  std::uint64_t id = 0, type = 0, microseconds = 0;
  std::string name, group;
  std::vector<std::uint64_t> after;
  std::map<std::string, std::uint64_t> attributes;
  [[nodiscard]] std::uint64_t at(const std::string& attribute) const { return attributes.at(attribute); }
};

TraceNode node_of(int rank, std::string_view bytes) {
  const WireMessage message(bytes);
  TraceNode node;
  node.rank = rank;
  node.id = message.number(1);
  node.type = message.number(3);
  node.microseconds = message.number(7);
  node.name = message.texts.at(2).front();
  if (message.numbers.contains(5)) node.after = message.numbers.at(5);
  for (const std::string& each : message.texts.at(10)) {
    const WireMessage attribute(each);
    const std::string& name = attribute.texts.at(1).front();
    if (attribute.texts.contains(29)) node.group = attribute.texts.at(29).front();
    for (const int field : {7, 9, 13, 27})
      if (attribute.numbers.contains(field)) node.attributes[name] = attribute.number(field);
  }
  return node;
}

struct Traces {
  explicit Traces(const Job& job) {
    for (const ExportedFile& file : ExporterRegistry::get("chakra").files(job)) {
      std::ostringstream out;
      file.write(out);
      const std::string bytes = out.str();
      if (file.name.ends_with(".groups.json")) {
        groups = nlohmann::json::parse(bytes);
        continue;
      }
      int rank = -1;
      const std::string stem = file.name.substr(0, file.name.size() - 3);
      const std::size_t dot = stem.rfind('.') + 1;
      std::from_chars(stem.data() + dot, stem.data() + stem.size(), rank);
      WireMessage file_reader("");
      file_reader.rest = bytes;
      file_reader.take(file_reader.varint());  // the head
      while (!file_reader.rest.empty()) {
        const TraceNode node = node_of(rank, file_reader.take(file_reader.varint()));
        EXPECT_TRUE(nodes.emplace(std::pair(rank, node.id), node).second) << "two nodes of one id";
      }
    }
  }
  nlohmann::json groups;
  std::map<std::pair<int, std::uint64_t>, TraceNode> nodes;  // [rank, id]
};

// Operations are named by their first node: a step of a ring is a message out and one in.
using Name = std::pair<int, std::uint64_t>;
using Message = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t>;  // sender, receiver, tag, bytes
Message message_of(const TraceNode& node) { return {node.at("comm_src"), node.at("comm_dst"), node.at("comm_tag"), node.at("comm_size")}; }

struct ReadGraph {
  explicit ReadGraph(const Traces& traces) {
    std::map<Message, Name> senders;
    std::map<std::pair<int, std::uint64_t>, Name> turn_of;  // [rank, tag]: the send of a ring's turn
    for (const auto& [name, node] : traces.nodes) {
      if (node.type != sent) continue;
      EXPECT_TRUE(senders.emplace(message_of(node), name).second) << node.name << ": two messages are one";
      turn_of[{node.rank, node.at("comm_tag")}] = name;
    }
    std::map<std::pair<int, std::string>, int> turns;
    for (const auto& [name, node] : traces.nodes) {
      if (node.type == received) continue;
      operations.insert(name);
      if (node.type == joined) meetings[{node.group, turns[{node.rank, node.group}]++}].insert(name);
      for (const std::uint64_t id : node.after) {
        const TraceNode& before = traces.nodes.at({node.rank, id});
        if (before.type != received) {
          edges.insert({{node.rank, id}, name});
          continue;
        }
        const Name sender = senders.at(message_of(before));
        const auto own_turn = turn_of.find({node.rank, before.at("comm_tag")});
        edges.insert({own_turn == turn_of.end() ? sender : own_turn->second, name});
      }
    }
    // All that a ring's turn sends has one tag.
    for (const auto& [name, node] : traces.nodes) {
      if (node.type != received) continue;
      ++messages;
      const Name sender = senders.at(message_of(node));
      const auto own_turn = turn_of.find({node.rank, node.at("comm_tag")});
      if (own_turn != turn_of.end()) meetings[{"", static_cast<int>(node.at("comm_tag"))}].insert({sender, own_turn->second});
    }
    EXPECT_EQ(messages, senders.size()) << "a message without a receiver";
  }
  std::set<Name> operations;
  std::set<std::pair<Name, Name>> edges;
  std::map<std::pair<std::string, int>, std::set<Name>> meetings;
  std::size_t messages = 0;
};

Name name_in_file(const workloads::StepGraph& graph, OpId id) { return {graph.ranks[graph.op(id).rank].rank, 2ULL * id}; }

std::uint64_t whole(double value) { return static_cast<std::uint64_t>(std::llround(value)); }

void expect_node(const workloads::StepGraph& graph, const Prices& prices, const nlohmann::json& groups, const TraceNode& node,
                 const Op& op) {
  ASSERT_EQ(node.name, graph.labels[op.label]);
  if (op.kind == OpKind::compute) {
    double flops = 0, bytes = 0;
    for (const workloads::Operator& each : graph.works[op.item].operators) {
      flops += each.flops * graph.works[op.item].repeat;
      bytes += each.bytes * graph.works[op.item].repeat;
    }
    ASSERT_EQ(node.type, computed);
    ASSERT_EQ(node.at("num_ops"), whole(flops));
    ASSERT_EQ(node.at("tensor_size"), whole(bytes));
    ASSERT_EQ(node.microseconds, whole(prices.compute_s(op) * 1e6));
    return;
  }
  const workloads::Call& call = graph.calls[op.item];
  const std::uint64_t size = whole(call.what.bytes * call.repeat);
  if (op.kind == OpKind::copy) {
    ASSERT_EQ(node.type, call.what.group == workloads::GroupKind::from_host ? load : store);
    ASSERT_EQ(node.at("tensor_size"), size);
    return;
  }
  ASSERT_EQ(node.at("comm_size"), size);
  const std::vector<int>& members = graph.groups[call.group].members;
  if (op.kind == OpKind::collective && call.what.kind != CollectiveKind::send_recv) {
    static const std::map<CollectiveKind, std::uint64_t> kinds{{CollectiveKind::all_reduce, 0},
                                                               {CollectiveKind::all_gather, 2},
                                                               {CollectiveKind::broadcast, 5},
                                                               {CollectiveKind::all_to_all, 6},
                                                               {CollectiveKind::reduce_scatter, 7}};
    ASSERT_EQ(node.type, joined);
    ASSERT_EQ(node.at("comm_type"), kinds.at(call.what.kind));
    ASSERT_EQ(groups.at(node.group).get<std::vector<int>>(), members);
    return;
  }
  ASSERT_EQ(node.type, sent);
  const auto own = std::ranges::find(members, node.rank);
  ASSERT_NE(own, members.end());
  ASSERT_EQ(node.at("comm_src"), static_cast<std::uint64_t>(node.rank));
  ASSERT_EQ(node.at("comm_dst"), static_cast<std::uint64_t>(own + 1 == members.end() ? members.front() : own[1]));
}

using NamedJob = std::pair<std::string, Settings>;
class ChakraTraces : public ::testing::TestWithParam<NamedJob> {};

TEST_P(ChakraTraces, AreTheStepGraph) {
  Job job = load_job({GetParam().first, GetParam().second, {}});
  const Traces traces(job);
  const ReadGraph read(traces);
  job.system.simulation.all_ranks = true;
  const workloads::Compiled compiled = compiled_for_simulation(job);
  const PreparedStep step(job, compiled);
  const workloads::StepGraph& graph = step.graph;
  ASSERT_GT(graph.size(), 100U);

  std::set<Name> operations;
  std::set<std::pair<Name, Name>> edges;
  for (OpId id = 0; id < graph.size(); ++id) {
    const Name name = name_in_file(graph, id);
    operations.insert(name);
    ASSERT_TRUE(traces.nodes.contains(name)) << graph.labels[graph.op(id).label];
    ASSERT_NO_FATAL_FAILURE(expect_node(graph, step.prices, traces.groups, traces.nodes.at(name), graph.op(id)));
    for (const OpId next : graph.successors_of(id)) edges.insert({name, name_in_file(graph, next)});
  }
  EXPECT_TRUE(read.operations == operations) << read.operations.size() << " operations, not " << operations.size();
  EXPECT_TRUE(read.edges == edges) << read.edges.size() << " dependencies, not " << edges.size();

  std::set<std::set<Name>> meetings, expected;
  for (const auto& [turn, members] : read.meetings) meetings.insert(members);
  for (std::uint32_t joint = 0; joint < graph.joints(); ++joint) {
    std::set<Name> members;
    for (const OpId id : graph.members(joint)) members.insert(name_in_file(graph, id));
    expected.insert(members);
  }
  EXPECT_TRUE(meetings == expected) << meetings.size() << " collectives, not " << expected.size();
}

INSTANTIATE_TEST_SUITE_P(Jobs, ChakraTraces,
                         ::testing::Values(NamedJob{"llama3-8b-8-h100", {{"batch.global", "8"}}},
                                           NamedJob{"llama3-8b-8-h100", {{"batch.global", "8"}, {"optimizer.device", "cpu"}}},
                                           NamedJob{"mixtral-8x7b-64-h100", {{"batch.global", "64"}}},
                                           NamedJob{"llama2-70b-128-a100", {{"batch.global", "16"}, {"simulation.granularity", "layer"}}}),
                         [](const auto& info) { return "number_" + std::to_string(info.index); });

}  // namespace
}  // namespace rehearse::sim::testing
