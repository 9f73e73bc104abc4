#include "sim/engine/prices.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "sim/cost/queue.hpp"

namespace rehearse::sim {
namespace {

// Passes of the same experts on the same tokens need the same operators.
class ExpertSeconds {
 public:
  ExpertSeconds(const System& system, const workloads::Workload& workload) : system_(system), workload_(workload) {}
  double of(const workloads::ExpertWork& work) {
    if (!experts_ || pairs_ != work.pairs) experts_ = workloads::expert_operators(workload_, work.pairs);
    pairs_ = work.pairs;
    double seconds = 0;
    for (const workloads::Operator& op : workloads::operators_of(workload_, work, *experts_))
      seconds += operator_seconds(system_.gpu, system_.software, op);
    return seconds;
  }

 private:
  const System& system_;
  const workloads::Workload& workload_;
  std::optional<workloads::BlockProgram> experts_;
  double pairs_ = 0;
};

double work_seconds(const System& system, const workloads::Workload& workload, const CommunicationModel& model,
                    const workloads::StepGraph& graph, const workloads::Work& work) {
  if (work.in_pair) return device_seconds(system.gpu, system.software, work.operators.front());
  double once = work.step_overhead ? system.software.step_s : 0;
  if (work.queue == nullptr) {
    for (const workloads::Operator& op : work.operators) once += operator_seconds(system.gpu, system.software, op);
    return once * work.repeat;
  }
  std::size_t i = 0;
  const auto seconds_of_call = [&](const workloads::Communication& call) {
    return model.price(call, graph.groups[work.queue_groups[i++]].members).seconds();
  };
  return work.repeat * queued_seconds(system.gpu, system.software, work.operators, *work.queue,
                                      more_issue_s(system.gpu, system.software, system.cluster, workload), seconds_of_call);
}

// In the order of their tokens.
void price_experts(const System& system, const workloads::Workload& workload, const workloads::StepGraph& graph,
                   std::vector<double>& work_s) {
  std::vector<std::uint32_t> of_experts;
  for (std::uint32_t i = 0; i < graph.works.size(); ++i) {
    if (graph.works[i].experts) of_experts.push_back(i);
  }
  std::ranges::sort(of_experts, {}, [&](std::uint32_t i) { return std::pair(graph.works[i].experts->pairs, i); });
  ExpertSeconds seconds(system, workload);
  for (const std::uint32_t i : of_experts) work_s[i] = seconds.of(*graph.works[i].experts) * graph.works[i].repeat;
}

// Exchanges of several passes are the same.
class CallPrices {
 public:
  CallPrices(const System& system, const CommunicationModel& model, const workloads::StepGraph& graph)
      : system_(system), model_(model), graph_(graph) {}

  CallPrice of(const workloads::Call& call) {
    if (!call.what.exchange) return made(call);
    const auto [it, added] = exchanges_.try_emplace({call.what.exchange.get(), call.group});
    if (added) it->second = made(call);
    return it->second;
  }

 private:
  [[nodiscard]] CallPrice made(const workloads::Call& call) const {
    const std::vector<int>& members = graph_.groups[call.group].members;
    CallPrice price = model_.price(call.what, members);
    if (!system_.simulation.faults.slow.ports.empty() && price.inter_bytes > 0) price.inter_bytes_per_s *= left(call.what, members);
    return price;
  }

  // Of the group's rate to the network. All go at the pace of the slowest port; of an exchange each port has bytes of its own, and the one
  // that takes longest counts.
  [[nodiscard]] double left(const workloads::Communication& what, const std::vector<int>& members) const {
    const auto of_port = [&](int rank) { return model_.left_of_nic(what.group, system_.simulation.faults.slow.port(rank)); };
    double least = 1;
    if (what.kind == workloads::CollectiveKind::send_recv && what.group == workloads::GroupKind::pp) {  // the sender's rail at both ends
      const int gpus = system_.cluster.gpus_per_node, from = members.front(), to = members.back();
      return std::min(of_port(from), of_port(to - to % gpus + from % gpus));
    }
    if (!what.exchange) {
      for (const int rank : members) least = std::min(least, of_port(rank));
      return least;
    }
    const workloads::PortLoads loads = model_.loads(what, members);
    double longest = 0;
    for (std::size_t i = 0; i < members.size(); ++i)
      longest = std::max(longest, std::max(loads.inter_out[i], loads.inter_in[i]) / of_port(members[i]));
    return loads.most_inter() / longest;
  }

  const System& system_;
  const CommunicationModel& model_;
  const workloads::StepGraph& graph_;
  std::map<std::pair<const workloads::Exchange*, std::uint32_t>, CallPrice> exchanges_;
};

}  // namespace

Prices price_graph(const System& system, const workloads::Workload& workload, const CommunicationModel& model,
                   const workloads::StepGraph& graph) {
  Prices prices;
  for (const workloads::Work& work : graph.works)
    prices.work_s.push_back(work.experts ? 0 : work_seconds(system, workload, model, graph, work));
  price_experts(system, workload, graph, prices.work_s);
  const SlowParts& slow = system.simulation.faults.slow;
  CallPrices calls(system, model, graph);
  for (const workloads::Call& call : graph.calls) prices.calls.push_back(calls.of(call));
  if (slow.gpus.empty()) return prices;
  for (const workloads::SimulatedRank& rank : graph.ranks) prices.slowdown.push_back(slow.gpu(rank.rank));
  return prices;
}

}  // namespace rehearse::sim
