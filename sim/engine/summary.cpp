#include "sim/engine/summary.hpp"

#include <algorithm>
#include <future>
#include <map>
#include <numeric>
#include <tuple>

#include "sim/engine/memory_over_time.hpp"
#include "workloads/collective.hpp"

namespace rehearse::sim {
namespace {

struct Executed {
  long calls = 0;      // repeats counted
  double seconds = 0;  // all of them
  double alone_s = 0;  // all of them, each alone
  double shortest_s = never_s;
};

// Of a program an operation of each call that is its block's.
class CallsOfPrograms {
 public:
  explicit CallsOfPrograms(const workloads::StepGraph& graph) : graph_(graph) {
    for (const workloads::RankBlock& block : graph.blocks()) {
      if (block.program >= places_.size()) places_.resize(block.program + 1UL);
      if (places_[block.program].empty()) places_[block.program] = places_in(graph.program(block));
    }
  }
  // [place among the block's calls] the graph's call; of those that no operation is of, none.
  [[nodiscard]] std::vector<std::uint32_t> of(const workloads::RankBlock& block) const {
    std::vector<std::uint32_t> calls;
    for (const workloads::OpId place : places_[block.program])
      calls.push_back(place == workloads::no_op ? none : graph_.op(block.first + place).item);
    return calls;
  }
  static constexpr std::uint32_t none = ~std::uint32_t{0};

 private:
  static std::vector<workloads::OpId> places_in(const workloads::RankProgram& program) {
    std::vector<workloads::OpId> places;
    for (workloads::OpId at = 0; at < program.ops.size(); ++at) {
      const workloads::Op& op = program.ops[at];
      if (op.kind == workloads::OpKind::compute) continue;
      if (op.item >= places.size()) places.resize(op.item + 1UL, workloads::no_op);
      places[op.item] = at;
    }
    return places;
  }

  const workloads::StepGraph& graph_;
  std::vector<std::vector<workloads::OpId>> places_;  // [program]
};

struct Row {
  CollectiveResult result;
  std::vector<Executed> by_rank;
};

// A block's operations, by call and rank: [rank of the block][place among the block's calls].
std::vector<std::vector<Executed>> executed(const workloads::StepGraph& graph, const workloads::RankBlock& block,
                                            const std::vector<std::uint32_t>& calls, const Execution& execution) {
  std::vector<std::vector<Executed>> all;
  workloads::OpId id = block.first;
  for (const workloads::Op& op : graph.program(block).ops) {
    if (op.kind != workloads::OpKind::compute) {
      while (op.rank >= all.size()) all.emplace_back(calls.size());
      Executed& own = all[op.rank][op.item];
      own.calls += graph.calls[calls[op.item]].repeat;
      own.seconds += execution.end_s[id] - execution.start_s(graph, id);
    }
    ++id;
  }
  return all;
}

void finish_row(const std::vector<Executed>& by_rank, workloads::CollectiveKind kind, CollectiveResult& row) {
  Executed all;
  for (const Executed& executed : by_rank) {
    if (executed.calls == 0) continue;
    row.calls = std::max(row.calls, executed.calls);
    all.calls += executed.calls;
    all.seconds += executed.seconds;
    all.alone_s += executed.alone_s;
    all.shortest_s = std::min(all.shortest_s, executed.shortest_s);
  }
  row.seconds = all.shortest_s < row.longest_s ? all.alone_s / static_cast<double>(all.calls) : row.longest_s;
  row.in_step_s = all.seconds / static_cast<double>(all.calls);
  const workloads::Bandwidth bandwidth = workloads::nccl_bandwidth(kind, row.ranks, row.bytes, row.seconds);
  row.algbw_bytes_per_s = bandwidth.algbw_bytes_per_s;
  row.busbw_bytes_per_s = bandwidth.busbw_bytes_per_s;
}

class Rows {
 public:
  Rows(const workloads::StepGraph& graph, const Prices& prices)
      : graph_(graph), prices_(prices), calls_of_(graph), row_of_(graph.calls.size()) {
    std::vector<bool> occurs(graph.calls.size());
    for (const workloads::RankBlock& block : graph.blocks()) {
      for (const std::uint32_t call : calls_of_.of(block)) {
        if (call != CallsOfPrograms::none) occurs[call] = true;
      }
    }
    for (std::uint32_t call = 0; call < graph.calls.size(); ++call) {
      if (occurs[call] && prices.calls[call].kind != CallKind::none) row_of_[call] = &add_call(call);
    }
  }

  // Each rank's calls in their order, whatever the order of its operations.
  void add(const workloads::RankBlock& block, const Execution& execution) {
    const std::vector<std::uint32_t> calls = calls_of_.of(block);
    std::vector<std::uint32_t> order(calls.size());
    std::iota(order.begin(), order.end(), 0U);
    std::ranges::sort(order, {}, [&](std::uint32_t place) { return calls[place]; });
    const std::vector<std::vector<Executed>> all = executed(graph_, block, calls, execution);
    for (std::uint32_t rank = 0; rank < all.size(); ++rank) {
      for (const std::uint32_t place : order) add(calls[place], all[rank][place], block.rank + rank);
    }
  }

  [[nodiscard]] std::vector<CollectiveResult> results() && {
    std::vector<CollectiveResult> out;
    for (auto& [key, row] : rows_) {
      finish_row(row.by_rank, std::get<0>(key), row.result);
      out.push_back(std::move(row.result));
    }
    return out;
  }

 private:
  using Key = std::tuple<workloads::CollectiveKind, std::string, double, double>;  // kind, group, bytes, seconds alone (0: they differ)

  Row& add_call(std::uint32_t index) {
    const workloads::Call& call = graph_.calls[index];
    const workloads::Group& group = graph_.groups[call.group];
    const CallPrice& price = prices_.calls[index];
    const Key key{call.what.kind, std::string(workloads::name_of(group.kind)), call.what.bytes, call.what.exchange ? 0 : price.seconds()};
    Row& row = rows_[key];
    row.by_rank.resize(graph_.ranks.size());
    row.result.name = workloads::name_of(call.what.kind);
    row.result.group = std::get<1>(key);
    row.result.algorithm = price.algorithm;
    row.result.protocol = price.protocol_name();
    row.result.ranks = static_cast<int>(group.members.size());
    row.result.bytes = call.what.bytes;
    row.result.longest_s = std::max(row.result.longest_s, price.seconds());
    return row;
  }

  void add(std::uint32_t call, const Executed& more, std::uint32_t rank) {
    if (more.calls == 0 || row_of_[call] == nullptr) return;
    const double alone_s = prices_.calls[call].seconds();
    Executed& own = row_of_[call]->by_rank[rank];
    own.calls += more.calls;
    own.seconds += more.seconds;
    own.alone_s += static_cast<double>(more.calls) * alone_s;
    own.shortest_s = std::min(own.shortest_s, alone_s);
  }

  const workloads::StepGraph& graph_;
  const Prices& prices_;
  CallsOfPrograms calls_of_;
  std::map<Key, Row> rows_;
  std::vector<Row*> row_of_;  // [call]; none of what takes no time or never occurs
};

}  // namespace

std::vector<CollectiveResult> collective_results(const workloads::StepGraph& graph, const Prices& prices, const Execution& execution) {
  Rows rows(graph, prices);
  for (const workloads::RankBlock& block : graph.blocks()) rows.add(block, execution);
  return std::move(rows).results();
}

StepResult summarise(const PreparedStep& prepared, const std::vector<Execution>& executions, std::string method) {
  const workloads::StepGraph& graph = prepared.graph;
  StepResult result;
  result.method = std::move(method);
  result.step_s = executions.back().step_s;
  for (const Execution& run : executions) result.step_seconds.push_back(run.step_s);
  // Of a large step the phases, which take as long as the rest, on a thread of their own.
  constexpr std::size_t large = 1'000'000;  // operations
  std::future<std::vector<PhaseTimes>> accounted =
      std::async(graph.size() < large ? std::launch::deferred : std::launch::async, [&] { return account(graph, executions.back()); });
  result.collectives = collective_results(graph, prepared.prices, executions.back());
  result.memory = memory_of(prepared, executions);
  const std::vector<PhaseTimes> phases = accounted.get();
  for (std::size_t i = 0; i < graph.ranks.size(); ++i) {
    result.ranks.push_back({graph.ranks[i].rank, graph.ranks[i].stage, graph.ranks[i].multiplicity, phases[i]});
  }
  result.activities = static_cast<long>(graph.size() * executions.size());
  result.told_apart = prepared.fold.told_apart;
  return result;
}

}  // namespace rehearse::sim
