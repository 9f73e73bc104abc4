#include "sim/engine/summary.hpp"

#include <algorithm>
#include <future>
#include <map>
#include <numeric>
#include <span>
#include <tuple>

#include "config/huge_pages.hpp"
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

// Communications of the graph by call, and of each call by rank.
class ByCall {
 public:
  explicit ByCall(const workloads::StepGraph& graph) : first_(graph.calls.size() + 1) {
    const auto each = [&](const auto& visit) {
      for (const workloads::RankBlock& block : graph.blocks()) {
        const std::vector<workloads::Op>& ops = graph.program(block).ops;
        for (workloads::OpId at = 0; at < ops.size(); ++at) {
          if (ops[at].kind != workloads::OpKind::compute) visit(block.first + at);
        }
      }
    };
    each([&](workloads::OpId id) { ++first_[graph.op(id).item + 1]; });
    std::partial_sum(first_.begin(), first_.end(), first_.begin());
    config::reserve_on_huge_pages(ops_, first_.back());
    ops_.resize(first_.back());
    std::vector<std::uint32_t> next(first_.begin(), first_.end() - 1);
    each([&](workloads::OpId id) { ops_[next[graph.op(id).item]++] = id; });
    if (graph.blocks().size() == graph.ranks.size()) return;  // they are built, and so stand, rank by rank
    for (std::uint32_t call = 0; call < graph.calls.size(); ++call)
      std::ranges::stable_sort(of(call), {}, [&](workloads::OpId id) { return graph.op(id).rank; });
  }
  [[nodiscard]] std::span<workloads::OpId> of(std::uint32_t call) {
    return std::span(ops_).subspan(first_[call], first_[call + 1] - first_[call]);
  }

 private:
  std::vector<std::uint32_t> first_;  // [call]
  std::vector<workloads::OpId> ops_;
};

struct Row {
  CollectiveResult result;
  std::vector<Executed> by_rank;
};

// One rank's operations of a call, which come first in `ops`.
Executed executed(const workloads::StepGraph& graph, const Execution& execution, std::span<const workloads::OpId>& ops) {
  Executed own;
  const workloads::Op first = graph.op(ops.front());
  for (; !ops.empty() && graph.op(ops.front()).rank == first.rank; ops = ops.subspan(1)) {
    own.calls += graph.calls[first.item].repeat;
    own.seconds += execution.end_s[ops.front()] - execution.start_s[ops.front()];
  }
  return own;
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

}  // namespace

std::vector<CollectiveResult> collective_results(const workloads::StepGraph& graph, const Prices& prices, const Execution& execution) {
  using Key = std::tuple<workloads::CollectiveKind, std::string, double, double>;  // kind, group, bytes, seconds alone (0: they differ)
  std::map<Key, Row> rows;
  ByCall by_call(graph);
  for (std::uint32_t index = 0; index < graph.calls.size(); ++index) {
    const workloads::Call& call = graph.calls[index];
    const workloads::Group& group = graph.groups[call.group];
    const CallPrice& price = prices.calls[index];
    std::span<const workloads::OpId> ops = by_call.of(index);
    if (price.kind == CallKind::none || ops.empty()) continue;
    const Key key{call.what.kind, std::string(workloads::name_of(group.kind)), call.what.bytes, call.what.exchange ? 0 : price.seconds()};
    auto& [row, by_rank] = rows[key];
    row.name = workloads::name_of(call.what.kind);
    row.group = std::get<1>(key);
    row.algorithm = price.algorithm;
    row.ranks = static_cast<int>(group.members.size());
    row.bytes = call.what.bytes;
    row.longest_s = std::max(row.longest_s, price.seconds());
    by_rank.resize(graph.ranks.size());
    while (!ops.empty()) {
      Executed& own = by_rank[graph.op(ops.front()).rank];
      const Executed more = executed(graph, execution, ops);
      own.calls += more.calls;
      own.seconds += more.seconds;
      own.alone_s += static_cast<double>(more.calls) * price.seconds();
      own.shortest_s = std::min(own.shortest_s, price.seconds());
    }
  }
  std::vector<CollectiveResult> out;
  for (auto& [key, row] : rows) {
    finish_row(row.by_rank, std::get<0>(key), row.result);
    out.push_back(std::move(row.result));
  }
  return out;
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
