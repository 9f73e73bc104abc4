#include "sim/engine/prices.hpp"

#include <algorithm>

namespace rehearse::sim {
namespace {

double work_seconds(const Job& job, const CommunicationModel& model, const workloads::StepGraph& graph, const workloads::Work& work) {
  double once = work.step_overhead ? job.system.software.step_s : 0;
  if (work.queue == nullptr) {
    for (const workloads::Operator& op : work.operators) once += operator_seconds(job.system.gpu, job.system.software, op);
    return once * work.repeat;
  }
  double calls_s = 0;
  for (const workloads::Communication& call : work.queue->calls)
    calls_s += model.price(call, graph.groups[work.queue_group].members).seconds();
  const int calls = static_cast<int>(work.queue->calls.size());
  return work.repeat * queued_seconds(job.system.gpu, job.system.software, work.operators, work.queue->operators, calls_s, calls);
}

}  // namespace

Prices price_graph(const Job& job, const CommunicationModel& model, const workloads::StepGraph& graph) {
  Prices prices;
  for (const workloads::Work& work : graph.works) prices.work_s.push_back(work_seconds(job, model, graph, work));
  const SlowParts& slow = job.system.simulation.faults.slow;
  for (const workloads::Call& call : graph.calls) {
    const std::vector<int>& members = graph.groups[call.group].members;
    CallPrice& price = prices.calls.emplace_back(model.price(call.what, members));
    double slowest = 1;  // all go at the pace of the slowest port
    for (const int rank : members) slowest = std::max(slowest, slow.port(rank));
    if (slowest > 1) price.inter_bytes_per_s *= model.left_of_nic(slowest);
  }
  if (slow.gpus.empty()) return prices;
  for (const workloads::SimulatedRank& rank : graph.ranks) prices.slowdown.push_back(slow.gpu(rank.rank));
  return prices;
}

}  // namespace rehearse::sim
